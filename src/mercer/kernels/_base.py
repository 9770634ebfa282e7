"""The base class of kernels, and combinations: sums, products, multiples, powers, normalized kernels."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial, reduce
from itertools import chain, repeat
from math import prod
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from mercer._types import Floats
from mercer.errors import KernelError
from mercer.kernels._input_kinds import AcceptsRows, InputKind
from mercer.kernels._matrices import Matrix, integer_power, mirror, precision_of
from mercer.kernels._parameters import integer, nonnegative

Parts = list[tuple[str, "Kernel"]]
# X -> block(X, Z) for the centers Z of one kernel or several.
Evaluators = list[Callable[..., Floats]]
# What a combination of kernels takes: the first of these that one of them needs.
RANKED: tuple[InputKind, ...] = ("columns", "vectors", "objects", "values")


class Kernel(AcceptsRows, BaseEstimator, ABC):
    """k(x, z) = <phi(x), phi(z)>: the similarity of two objects.

    A kernel consists of its parameters only; it is never fitted. Parameters may be strings, such as
    ``gamma="median"``, which :meth:`candidates` replaces by numbers computed from data; evaluation needs numbers.

    ``k + l``, ``k * l``, ``2.0 * k`` and ``k ** 3`` are kernels again. Parts of sums and products are named
    after their classes, so that ``rbf__gamma`` or ``rbf_2__gamma`` can be set and searched.
    """

    # Makes NumPy scalars defer `scalar * kernel` to the kernel.
    __array_ufunc__ = None
    # The width parameter, in kernels that have one.
    gamma: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        """A class that overrides ``block`` is evaluated by it, not by a faster method of its parent."""
        super().__init_subclass__(**options)
        for name in ("evaluator", "blocks_for_widths"):
            if "block" in vars(cls) and name not in vars(cls):
                setattr(cls, name, vars(Kernel)[name])

    @abstractmethod
    def block(self, X: Matrix, Z: Matrix) -> Floats:
        """k(x_i, z_j) as an (n, m) array that the caller owns and may overwrite."""

    @abstractmethod
    def diag(self, X: Matrix) -> Floats:
        """k(x_i, x_i) as an (n,) array."""

    def evaluator(self, Z: Matrix) -> Callable[..., Floats]:
        """(X, workspace=None) -> block(X, Z) for many X, with work that depends only on Z done once; picklable.

        ``workspace`` is an (n, m) array that may be reused for the block, if it has its type.
        """
        return partial(_evaluate_block, self, Z)

    @property
    def positive_semidefinite(self) -> bool:
        """Whether every Gram matrix is positive semidefinite by construction; False if not known."""
        return True

    @property
    def resolved(self) -> bool:
        """Whether all parameters are numbers."""
        return not isinstance(self.gamma, str)

    def narrowed(self, factor: float) -> "Kernel":
        """A copy with ``factor`` times its gamma."""
        if self.gamma is None or isinstance(self.gamma, str):
            raise KernelError(f"{self!r} has no gamma to multiply; use a kernel whose gamma is a number")
        narrow: Kernel = clone(self).set_params(gamma=np.multiply(self.gamma, factor).tolist())
        return narrow

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> "Sequence[Kernel]":
        """Candidate kernels to choose from, with strings replaced by numbers computed from the rows X.

        A row of weight 2 counts like two equal rows, a row of weight 0 like none. Neighbors differ by one step of
        one parameter; those of several parameters are a :class:`Grid`.
        """
        return [self]

    def blocks_for_widths(self, X: Matrix, Z: Matrix) -> "Callable[[Kernel], Floats]":
        """kernel -> kernel.block(X, Z), up to rounding, for kernels that differ from this one in numbers only.

        Work that does not depend on the numbers, such as squared distances, is done once.
        """
        return lambda kernel: kernel.block(X, Z)

    def centered_on(self, X: Matrix) -> "Kernel":
        """A kernel that gives the same fits if coefficients sum to zero, but is more accurate for rows like X."""
        return self

    def copy(self) -> "Kernel":
        """A kernel with the same parameters, which does not change when those of this one are set."""
        twin: Kernel = _copied(self)
        return twin

    def __str__(self) -> str:
        """One line, with numbers rounded to four digits; ``repr`` has all digits."""
        return re.sub(r"\s+", " ", repr(_rounded(self)))

    def __add__(self, other: object) -> "Sum":
        return Sum(_joined(Sum, self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: object) -> "Product | Scaled":
        if isinstance(other, Real):
            return _scaled(self, float(other))
        return Product(_joined(Product, self, other)) if isinstance(other, Kernel) else NotImplemented

    __rmul__ = __mul__

    def __pow__(self, exponent: object) -> "Power":
        return Power(self, int(exponent)) if isinstance(exponent, Integral) else NotImplemented


class Differentiable(ABC):
    """A kernel on vectors whose derivatives are known; abstract."""

    @abstractmethod
    def gradient(self, X: Matrix, Z: Matrix, coef: Floats) -> Floats:
        """Derivatives (q, n, d) at rows X of the functions f_c(x) = sum_j coef_jc k(x, z_j), coef (m, q)."""


def gradient_of(kernel: Kernel, X: Matrix, Z: Matrix, coef: Floats) -> Floats:
    """``kernel.gradient(X, Z, coef)``, or an error if derivatives are not known."""
    if not isinstance(kernel, Differentiable):
        raise KernelError(f"derivatives of {kernel} are not known; use a kernel on vectors, or a sum of them")
    slopes: Floats = kernel.gradient(X, Z, coef)
    return slopes


class Normable(ABC):
    """A kernel whose values may be too large or small for floating point, unless normalized; abstract."""

    @abstractmethod
    def cosine_evaluator(self, Z: Matrix) -> Callable[..., Floats]:
        """(X, workspace=None) -> k(x_i, z_j) / sqrt(k(x_i, x_i) k(z_j, z_j)), or 0 if a root is 0; picklable."""

    @abstractmethod
    def log_diag(self, X: Matrix) -> Floats:
        """log k(x_i, x_i), (n,)."""


class Grid(Sequence[Kernel]):
    """Kernels made of one candidate each from several sequences, the last of which varies fastest.

    ``shape`` are the lengths of the axes along which there is a choice; a kernel is made when it is asked for.
    """

    def __init__(self, choices: list[Sequence[Kernel]], make: Callable[[list[Kernel]], Kernel]) -> None:
        self.choices = choices
        self.make = make

    @property
    def shape(self) -> tuple[int, ...]:
        lengths = [length for choice in self.choices for length in grid_shape(choice)]
        return tuple(length for length in lengths if length != 1) or (1,)

    def __len__(self) -> int:
        return prod(len(choice) for choice in self.choices)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        # Not np.unravel_index, which stops at 64 axes.
        rest, chosen = int(index) % len(self), []
        for choice in reversed(self.choices):
            rest, i = divmod(rest, len(choice))
            chosen.append(choice[i])
        return self.make(chosen[::-1])


def grid_shape(kernels: Sequence[Kernel]) -> tuple[int, ...]:
    """The lengths of the axes of candidates: one for each parameter to be chosen."""
    return kernels.shape if isinstance(kernels, Grid) else (len(kernels),)


class Composite(Kernel):
    """A kernel made of others; abstract."""

    @abstractmethod
    def _kernels(self) -> list[Kernel]:
        """The component kernels."""

    @property
    def positive_semidefinite(self) -> bool:
        return all(kernel.positive_semidefinite for kernel in self._kernels())

    @property
    def resolved(self) -> bool:
        return all(kernel.resolved for kernel in self._kernels())

    @property
    def symmetric(self) -> bool:
        return all(kernel.symmetric for kernel in self._kernels())

    @property
    def averages(self) -> bool:
        return all(kernel.averages for kernel in self._kernels())

    @property
    def reads(self) -> tuple[Any, ...] | None:
        each = [kernel.reads for kernel in self._kernels()]
        return None if None in each else tuple(dict.fromkeys(chain.from_iterable(filter(None, each))))

    @property
    def input_kind(self) -> InputKind:
        """The rows that all components accept: columns or vectors, if others accept any objects.

        Named columns that are all numbers are vectors, too.
        """
        kinds = {kernel.input_kind for kernel in self._kernels()}
        if "values" in kinds and len(kinds) > 1:
            raise KernelError(
                f"{self} combines kernels for different rows, {', '.join(sorted(kinds))}; precompute the values "
                "of all parts, or of none"
            )
        return next(kind for kind in RANKED if kind in kinds)

    def check_rows(self, X: Matrix) -> None:
        for kernel in self._kernels():
            kernel.check_rows(X)


def kind_of(kernel: Kernel) -> tuple[Any, ...]:
    """The class of a kernel and its parameters, but for the size of gamma: such kernels are relatives."""
    params = kernel.get_params(deep=False).items()
    return type(kernel), *(
        _fixed(ratios_of(value) if name == "gamma" else value)
        for name, value in params
        if name != "gamma" or not isinstance(value, Real)
    )


def ratios_of(gamma: Any) -> Any:
    """Logarithms of one gamma for each feature in units of the largest, up to rounding; another gamma as it is."""
    if not isinstance(gamma, list | tuple | np.ndarray) or not np.max(gamma, initial=0.0) > 0.0:
        return gamma
    with np.errstate(divide="ignore"):
        return np.round(np.log(np.asarray(gamma) / np.max(gamma)), 9).tolist()


def _fixed(value: Any) -> Any:
    """Something that can be hashed and is equal for equal parameters, or for the same one."""
    if isinstance(value, Kernel):
        return kind_of(value)
    if isinstance(value, Mapping):
        return tuple((name, _fixed(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(_fixed(each) for each in value)
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    return value if isinstance(value, Hashable) else id(value)


class Pointwise(Composite):
    """A function of the values of other kernels for the same pair; abstract."""

    @abstractmethod
    def _combined(self, values: Iterable[Floats]) -> Floats:
        """The values of this kernel from those of its components, which may be overwritten."""

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        return self._combined(kernel.block(X, Z) for kernel in self._kernels())

    def diag(self, X: Matrix) -> Floats:
        return self._combined(np.array(kernel.diag(X)) for kernel in self._kernels())

    def evaluator(self, Z: Matrix) -> Callable[..., Floats]:
        return partial(self._evaluate, [kernel.evaluator(Z) for kernel in self._kernels()])

    def blocks_for_widths(self, X: Matrix, Z: Matrix) -> Callable[[Kernel], Floats]:
        values = [kernel.blocks_for_widths(X, Z) for kernel in self._kernels()]
        return lambda kernel: _relative(kernel, values)

    def _evaluate(self, values: Evaluators, X: Matrix, workspace: Floats | None = None) -> Floats:
        """The first kernel writes its values into the given memory, and the others are combined with them."""
        workspaces = chain([workspace], repeat(None))
        return self._combined(evaluate(X, space) for evaluate, space in zip(values, workspaces))


class Parted(Composite):
    """A kernel of several kernels with names, by which their parameters can be set and searched; abstract."""

    @abstractmethod
    def _named(self) -> Parts:
        """Names and kernels."""

    @abstractmethod
    def _rename(self, parts: Parts) -> None:
        """Store these kernels, under the same names, in place of the own ones."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The own parameters; if deep also every part by its name and its parameters as ``name__parameter``."""
        params: dict[str, Any] = super().get_params(deep=False)
        for name, kernel in self._named() if deep else []:
            inner = kernel.get_params(deep=True).items()
            params |= {name: kernel, **{f"{name}__{key}": value for key, value in inner}}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set own parameters, a part by its name, or a parameter of a part as ``name__parameter``."""
        for key in super().get_params(deep=False):
            setattr(self, key, params.pop(key, getattr(self, key)))
        named = self._named()
        if any(name in params for name, _ in named):
            self._rename([(name, params.pop(name, kernel)) for name, kernel in named])
        super().set_params(**params)
        return self


class Composition(Parted, Pointwise):
    """A kernel made of named parts; abstract."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> Sequence[Kernel]:
        """All combinations of the candidates of the parts; the last part varies fastest."""
        names = [name for name, _ in self.parts]
        choices = [kernel.candidates(X, weight) for _, kernel in self.parts]
        return Grid(choices, lambda chosen: type(self)(list(zip(names, chosen))))

    def _named(self) -> Parts:
        return check_pairs(type(self).__name__, self.parts, 'a list of pairs, such as [("rbf", 2.0 * RBF())]')

    def _rename(self, parts: Parts) -> None:
        self.parts = parts

    def _kernels(self) -> list[Kernel]:
        """The parts without their names, after checking both."""
        owner, parts = type(self).__name__, self._named()
        check_names(owner, [name for name, _ in parts])
        return check_kernels(owner, [kernel for _, kernel in parts])


def check_parts(kernel: Kernel) -> None:
    """All that a kernel is made of, and all that this is made of, are kernels."""
    for part in kernel._kernels() if isinstance(kernel, Composite) else ():
        check_parts(part)


def check_kernels(owner: str, kernels: list[Any]) -> list[Kernel]:
    """The same, which are kernels and not names or classes of them."""
    for kernel in kernels:
        if not isinstance(kernel, Kernel):
            given = f"the class {kernel.__name__}" if isinstance(kernel, type) else repr(kernel)
            raise KernelError(f"{owner} contains {given}; pass kernels, such as RBF()")
    return kernels


def check_pairs(owner: str, parts: Any, remedy: str) -> Parts:
    """The same, which are pairs of a name and something else."""
    if not isinstance(parts, list | tuple):
        raise KernelError(f"the parts of {owner} are {parts!r}; pass {remedy}")
    for part in parts:
        if not isinstance(part, list | tuple) or len(part) != 2:
            raise KernelError(
                f"{owner} contains {part!r}, which is not a pair (name, kernel), and takes no kernels without "
                f"names; pass {remedy}"
            )
    return list(parts)


def check_names(owner: str, names: list[str], parameters: Iterable[str] = ("parts",)) -> None:
    """Names of parts differ, and can be told from those of parameters."""
    if not names:
        raise KernelError(f"{owner} has no parts; pass at least one (name, kernel)")
    for name in names:
        if not isinstance(name, str):
            raise KernelError(f"{owner} has a part that is named {name!r}; names are strings")
        if name in parameters or "__" in name or names.count(name) > 1:
            others = " or ".join(f'"{each}"' for each in parameters)
            raise KernelError(f'a part is named "{name}"; names must differ, contain no "__", and not be {others}')


class Sum(Differentiable, Composition):
    """k(x, z) = sum_p k_p(x, z), written ``k + l``.

    Parameters
    ----------
    parts : list of (str, Kernel)
        Names and kernels.

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear
    >>> k = 2.0 * RBF(gamma=0.5) + Linear()
    >>> k.set_params(rbf__gamma=1.0, rbf__scale=3.0)
    Sum(parts=[('rbf', Scaled(kernel=RBF(gamma=1.0), scale=3.0)),
               ('linear', Linear())])
    >>> k.block([[0.0], [1.0]], [[1.0]]).round(4)
    array([[1.1036],
           [4.    ]])
    """

    def centered_on(self, X: Matrix) -> Kernel:
        parts = [(name, kernel.centered_on(X)) for name, kernel in self.parts]
        same = type(self) is not Sum or all(new is old for (_, new), (_, old) in zip(parts, self.parts))
        return self if same else Sum(parts)

    def gradient(self, X: Matrix, Z: Matrix, coef: Floats) -> Floats:
        return reduce(np.add, (gradient_of(kernel, X, Z, coef) for kernel in self._kernels()))

    def _combined(self, values: Iterable[Floats]) -> Floats:
        return reduce(partial(_onto, np.add), values)


class Product(Composition):
    """k(x, z) = prod_p k_p(x, z), written ``k * l``.

    Parameters
    ----------
    parts : list of (str, Kernel)
        Names and kernels.

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear
    >>> RBF(gamma=1.0) * Linear() * RBF(gamma=2.0)
    Product(parts=[('rbf', RBF(gamma=1.0)), ('linear', Linear()),
                   ('rbf_2', RBF(gamma=2.0))])
    """

    def _combined(self, values: Iterable[Floats]) -> Floats:
        return reduce(partial(_onto, np.multiply), values)


class Wrapped(Composite):
    """A function of one kernel, whose parameters are accessible by their own names; abstract."""

    kernel: Kernel

    def _kernels(self) -> list[Kernel]:
        return check_kernels(type(self).__name__, [self.kernel])

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> Sequence[Kernel]:
        """One for every candidate of the inner kernel."""
        inner = self.kernel.candidates(X, weight)
        return Grid([inner], lambda chosen: clone(self).set_params(kernel=chosen[0]))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The own parameters; if deep, also those of the inner kernel, without a prefix."""
        own: dict[str, Any] = super().get_params(deep=False)
        return {**self.kernel.get_params(deep=True), **own} if deep else own

    def set_params(self, **params: Any) -> Self:
        """Set own parameters, and pass the others to the inner kernel."""
        for key in super().get_params(deep=False):
            setattr(self, key, params.pop(key, getattr(self, key)))
        self.kernel.set_params(**params)
        return self


class Scaled(Differentiable, Wrapped, Pointwise):
    """k(x, z) = scale * l(x, z), written ``scale * l``.

    Parameters
    ----------
    kernel : Kernel
        The kernel l.
    scale : float
        A nonnegative number.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (3 * Linear()).block([[1.0]], [[2.0]])
    array([[6.]])
    """

    def __init__(self, kernel: Kernel, scale: float = 1.0) -> None:
        self.kernel = kernel
        self.scale = scale

    def centered_on(self, X: Matrix) -> Kernel:
        inner = self.kernel.centered_on(X)
        return self if type(self) is not Scaled or inner is self.kernel else Scaled(inner, self.scale)

    def gradient(self, X: Matrix, Z: Matrix, coef: Floats) -> Floats:
        return gradient_of(self.kernel, X, Z, nonnegative("scale", self.scale) * coef)

    def _combined(self, values: Iterable[Floats]) -> Floats:
        scale = nonnegative("scale", self.scale)
        (K,) = values
        return _onto(np.multiply, K, scale)


class Power(Wrapped, Pointwise):
    """k(x, z) = l(x, z)^exponent, written ``l ** exponent``.

    Parameters
    ----------
    kernel : Kernel
        The kernel l.
    exponent : int
        At least 1: other powers of a kernel need not be kernels.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (Linear() ** 2).block([[3.0]], [[1.0], [-2.0]])
    array([[ 9., 36.]])
    """

    def __init__(self, kernel: Kernel, exponent: int = 2) -> None:
        self.kernel = kernel
        self.exponent = exponent

    def _combined(self, values: Iterable[Floats]) -> Floats:
        exponent = integer("exponent", self.exponent, least=1)
        (K,) = values
        return integer_power(K, exponent)


class Normalized(Wrapped):
    """k(x, z) = l(x, z) / sqrt(l(x, x) l(z, z)), the cosine of the angle in feature space.

    If l(x, x) = 0 (a zero vector, an empty string), k(x, z) is 0 for every z, and so is k(x, x).

    Parameters
    ----------
    kernel : Kernel
        The kernel l. Not ``Precomputed``, whose columns have no diagonal: normalize the matrix instead.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Normalized(Linear()).block([[3.0, 0.0], [0.0, 0.0]], [[2.0, 2.0]]).round(4)
    array([[0.7071],
           [0.    ]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        if isinstance(self.kernel, Normable):
            K = self.evaluator(Z)(X)
            return mirror(K) if Z is X else K
        rows = self.prepared(X)
        centers = rows if Z is X else self.prepared(Z)
        left = self._inverse_norms(rows)
        right = left if Z is X else self._inverse_norms(centers)
        return _onto(np.multiply, self.kernel.block(rows, centers), np.outer(left, right))

    def evaluator(self, Z: Matrix) -> Callable[..., Floats]:
        if isinstance(self.kernel, Normable):
            cosines: Callable[..., Floats] = self.kernel.cosine_evaluator(Z)
            return cosines
        Z = self.prepared(Z)
        return partial(self._evaluate_normalized, self.kernel.evaluator(Z), self._inverse_norms(Z))

    def _evaluate_normalized(
        self, evaluate: Callable[..., Floats], right: Floats, X: Matrix, workspace: Floats | None = None
    ) -> Floats:
        X = self.prepared(X)
        return _onto(np.multiply, evaluate(X, workspace), np.outer(self._inverse_norms(X), right))

    def prepared(self, X: Matrix) -> Matrix:
        return self.kernel.prepared(X)

    def diag(self, X: Matrix) -> Floats:
        if isinstance(self.kernel, Normable):
            return np.asarray(np.isfinite(self.kernel.log_diag(X)), precision_of(X))
        norms = self._inverse_norms(X)
        return (norms > 0).astype(norms.dtype)

    def _inverse_norms(self, X: Matrix) -> Floats:
        """l(x, x)^(-1/2), or 0 if l(x, x) = 0."""
        norms = self.kernel.diag(X)
        if (norms < 0).any():
            raise KernelError(
                f"{self.kernel!r} has k(x, x) = {norms.min():.3g} < 0 for some row and cannot be normalized; "
                "use a positive semidefinite kernel"
            )
        return np.divide(1.0, np.sqrt(norms), out=np.zeros_like(norms), where=norms > 0)


def _relative(kernel: Kernel, values: list[Callable[[Kernel], Floats]]) -> Floats:
    """The block of a pointwise kernel from those of its components."""
    assert isinstance(kernel, Pointwise)
    return kernel._combined(value(part) for value, part in zip(values, kernel._kernels()))


def cosines_from_logs(logs: Floats, left: Floats, right: Floats) -> Floats:
    """exp(log k(x, z) - (log k(x, x) + log k(z, z)) / 2), (n, m), from these logarithms (n, m), (n,) and (m,)."""
    norms = np.add.outer(*(np.where(np.isfinite(own), 0.5 * own, np.inf) for own in (left, right)))
    return np.asarray(np.exp(logs - norms))


def _evaluate_block(kernel: Kernel, Z: Matrix, X: Matrix, workspace: Floats | None = None) -> Floats:
    return kernel.block(X, Z)


def _onto(operation: np.ufunc, K: Floats, other: Floats | float) -> Floats:
    """operation(K, other), in the memory of K if its type can hold the result."""
    result: Floats = operation(K, other, out=K if K.dtype == np.result_type(K, other) else None)
    return result


def _scaled(kernel: Kernel, scale: float) -> Scaled:
    """A multiple of a kernel; nested multiples are merged."""
    if isinstance(kernel, Scaled):
        return Scaled(kernel.kernel, scale * kernel.scale)
    return Scaled(kernel, scale)


def named_parts(kernel: Kernel, kind: type[Composition]) -> Parts:
    """The parts of a sum or a product; any other kernel is its own only part."""
    return kernel.parts if isinstance(kernel, kind) else [(name_of(kernel), kernel)]


def _joined(kind: type[Composition], *kernels: Kernel) -> Parts:
    """The parts of all kernels under distinct names; a composition of the same kind is flattened."""
    return distinctly_named([part for kernel in kernels for part in named_parts(kernel, kind)])


def distinctly_named(pairs: Parts) -> Parts:
    """The same kernels, where a name that occurs again has a number."""
    parts: dict[str, Kernel] = {}
    for name, kernel in pairs:
        parts[_free_name(name, parts)] = kernel
    return list(parts.items())


def name_of(kernel: Kernel) -> str:
    """The class name in lower case; for a multiple, power or normalized kernel that of the inner kernel."""
    return name_of(kernel.kernel) if isinstance(kernel, Wrapped) else type(kernel).__name__.lower()


def _free_name(name: str, taken: dict[str, Kernel]) -> str:
    """rbf, rbf_2, rbf_3, ...: the first that is not taken."""
    stem, number = re.sub(r"_\d+$", "", name), 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name


def _copied(value: Any) -> Any:
    """Kernels inside of kernels and lists are copied, all else is shared."""
    if isinstance(value, Kernel):
        return type(value)(**{name: _copied(param) for name, param in value.get_params(deep=False).items()})
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    return type(value)(map(_copied, value)) if isinstance(value, list | tuple) else value


def _rounded(value: Any) -> Any:
    """A parameter with its numbers rounded to four digits, also inside lists, arrays and kernels."""
    if isinstance(value, Kernel):
        params = value.get_params(deep=False)
        return type(value)(**{name: _rounded(param) for name, param in params.items()})
    if isinstance(value, np.ndarray):
        return _rounded(value.tolist())
    if isinstance(value, list | tuple):
        return type(value)(_rounded(x) for x in value)
    return float(f"{value:.4g}") if isinstance(value, float) else value
