"""Oriented kernel principal component analysis: directions with much signal and little noise."""

from collections.abc import Mapping
from functools import partial
from numbers import Real
from typing import Any, cast

from mercer import _validation
from mercer._estimators.base import BlockValidator, schema_of
from mercer._estimators.directions.subspace import (
    SubspaceDetails,
    SubspaceModel,
    all_are_centers,
    budget_of,
    refuse_every_row,
    require_components,
    resolved,
)
from mercer._estimators.fitted import Fitted, fitted, with_state
from mercer._estimators.parameters import check_parameters, count_or_none, generator, parameters_of
from mercer._fitting.data import RowSchema, check_names
from mercer._fitting.subspaces.components import sample_rows, start_subspace
from mercer._fitting.subspaces.oriented import HELD, SHARE, NoiseRows, OrientedState, start_oriented
from mercer._gram.tangent_covariance import Transformation
from mercer._types import Array
from mercer.kernels import Kernel, as_kernel
from mercer.rows import MemoryRows, Rows, as_rows
from mercer.rows._resolve import feature_names, is_out_of_core
from mercer.rows._table import n_rows

ALLOWED = (
    "pass a function that transforms rows, rows that are noise, or a list of functions and of pairs (function or "
    "rows, weight)"
)


class OrientedKernelPCA(SubspaceModel):
    r"""Directions in the feature space of a kernel along which rows vary and noise does not: oriented kernel PCA.

    ``OrientedKernelPCA(2, noise=f)`` with a function f that shifts, turns or disturbs rows finds components that
    hardly change when rows do so. The width is a parameter of the kernel, as in
    ``OrientedKernelPCA(kernel=RBF(gamma=0.1))``.

    Finds w_1, w_2, ... of unit length that maximize, one after another,

    .. math:: \frac{w' S w}{w' N w + \mu \, w'w},

    with the covariance S of phi(x), the signal, and the second moment N of the noise. They are combinations of the
    rows, up to 2000, or of m centers (a Nyström approximation), from moments in passes over arrays, Parquet files,
    streams, Dask, Ray or Spark: one for a sample, one for the rows, and one for what transformations change, O(n
    m²) time each, and O(m²) memory. ``partial_fit`` and ``remove`` add rows and take them out again, O(m³) each.

    Scores of two components are uncorrelated over the rows, w_i'S w_j = 0, and w_i'(N + mu)w_j = 0; directions are
    not orthogonal. As mu grows the components become those of :class:`KernelPCA`.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components; None: all along which rows vary.
    kernel : str, Kernel or callable, default="rbf"
        "rbf" is ``RBF(gamma="median")``: there are no targets by which leave-one-out could choose.
    noise : function, rows or list
        What the components should ignore; there is no default.

        * A function of rows (b, d), as an array or CSR matrix, that returns transformed rows of the same shape,
          each from its own row: N is the mean of (phi(Tx) - phi(x))(phi(Tx) - phi(x))', the tangent covariance.
          It is called for blocks of rows in several threads, and must be picklable if an engine holds the rows
          or the model is to be stored.
        * Rows that are noise, from any source: N is the covariance of phi over them. A function that returns
          blocks must be wrapped in :class:`~mercer.rows.StreamRows`.
        * A list of these, each alone or as a pair with its weight, as in ``[f, (g, 0.5), (Z, 2.0)]``: N is the sum
          of all with these weights, 1 if there is none.
    mu : float or "auto", default="auto"
        The penalty of the length of w in units of the whole noise variance, the trace of N: the components do not
        depend on units of rows and noise. "auto" is 0.001. Larger values keep more of the variance of the rows,
        smaller ones avoid more of the noise; 0 drops directions in which the sample has no noise at all.
    centers : int, "auto", "all", selector or rows, default="auto"
        As in :class:`KernelPCA`. Transformed rows are not among them unless they are given, as in
        ``centers=np.vstack([some, f(some)])`` with some of the rows. They express better what transformations
        change: for turned and shifted digits they are worth more than as many further rows.
    max_memory, random_state, verbose
        As in :class:`KernelPCA`.

    Attributes
    ----------
    ratio_ : ndarray of shape (n_components,)
        The ratio of signal to noise that was maximized, largest first: ``signal_variance_ / (noise_variance_ +
        mu_)``.
    signal_variance_, noise_variance_ : ndarray of shape (n_components,)
        w'Sw and w'Nw: the variance of each score over the rows, and what the noise adds to it: the mean square of
        the change by a transformation, or the variance over noise rows, times the weight.
    mu_ : float
        The penalty in units of feature space.
    X_fit_, dual_coef_, intercept_, support_, kernel_, gamma_, n_components_, report_
        As in :class:`KernelPCA`.

    References
    ----------
    K. I. Diamantaras and S. Y. Kung (1996), Principal Component Neural Networks. S. Mika (2002), Kernel Fisher
    Discriminants, sections 3.4.2 and 3.4.5, Eqs. (3.20) to (3.24).

    Examples
    --------
    Rows vary along three columns; changes of the third are noise.

    >>> import numpy as np
    >>> from mercer import OrientedKernelPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3)) * (1.0, 2.0, 3.0)
    >>> def disturbed(X):
    ...     return X + (0.0, 0.0, 1.0)
    >>> model = OrientedKernelPCA(2, "linear", noise=disturbed).fit(X)
    >>> np.abs(np.corrcoef(model.transform(X).T, X.T)[:2, 2:]).round(1)
    array([[0., 1., 0.],
           [1., 0., 0.]])
    """

    ratio_ = fitted[Array]()
    mu_ = fitted[float]()
    signal_variance_ = fitted[Array]()
    noise_variance_ = fitted[Array]()
    _fixed = ("kernel", "centers", "noise")

    def __init__(
        self,
        n_components: int | None = None,
        kernel: str | Kernel | Any = "rbf",
        *,
        noise: Any = None,
        mu: float | str = "auto",
        centers: Any = "auto",
        max_memory: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.noise = noise
        self.mu = mu
        self.centers = centers
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    def _check(self) -> None:
        check_parameters(self)
        generator(self.random_state)
        count_or_none("n_components", self.n_components)
        share_of(self.mu)
        kernel = as_kernel(self.kernel)
        if kernel.takes_values:
            raise ValueError(
                "a kernel matrix says nothing about noise, of which kernel values are needed too; pass rows, and "
                "a kernel such as RBF"
            )
        for name, part, _ in parts_of(self.noise):
            if callable(part) and not kernel.takes_vectors:
                raise ValueError(
                    f"{name} is a function, but transformations need rows of numbers, and {kernel!r} takes "
                    "objects; pass rows that are noise"
                )

    def _fit_rows(self, rows: Rows, schema: RowSchema) -> Fitted:
        return self._start_sums(rows, schema)

    def _start_sums(self, rows: Rows, schema: RowSchema) -> Fitted:
        centers, kernel, rng = self.centers, as_kernel(self.kernel), generator(self.random_state)
        if isinstance(rows, MemoryRows) and all_are_centers(centers, kernel, n_rows(rows.X)):
            centers = "all"
        else:
            refuse_every_row(centers)
        sampled = sample_rows(rows, centers, rng, self.verbose)
        check = self._check_of(sampled)
        schema = schema.of_sample(sampled.rows, sampled.drawn.sample().X, vectors=check is not None)
        transformations, samples = self._noise(schema)
        resolve, budget, verbose = partial(resolved, self.kernel), budget_of(self), self.verbose
        started = start_subspace(
            resolve, sampled, check, centers, None, rng, budget, verbose, transformations, HELD
        )
        return self._solve_sums(start_oriented(started, samples, verbose), schema)

    def _noise(self, schema: RowSchema) -> tuple[tuple[Transformation, ...], tuple[NoiseRows, ...]]:
        """Functions, and rows that are noise, without those of weight zero."""
        parts = [part for part in parts_of(self.noise) if part[2] > 0.0]
        functions = tuple(Transformation(part, weight, name) for name, part, weight in parts if callable(part))
        model = with_state(self, Fitted(schema.attributes))
        samples = (model._noise_rows(*part) for part in parts if not callable(part[1]))
        return functions, tuple(samples)

    def _noise_rows(self, name: str, Z: Any, weight: float) -> NoiseRows:
        """Rows that are noise, with the columns of X."""
        if is_out_of_core(Z):
            check_names(schema_of(self).names, feature_names(Z))
            vectors = as_kernel(self.kernel).takes_vectors
            check = BlockValidator(self.n_features_in_, name=name) if vectors else None
            return NoiseRows(as_rows(Z), weight, check)
        try:
            return NoiseRows(MemoryRows(self._read(Z, reset=False), None, None), weight, None)
        except (TypeError, ValueError) as problem:
            raise ValueError(f"{name} does not have the rows of X: {problem}; {ALLOWED}") from problem

    def _known_sums(self) -> OrientedState:
        return cast(OrientedState, self._details.sums)

    def _solve_sums(self, sums: OrientedState, schema: RowSchema) -> Fitted:
        found = sums.solved(share_of(self.mu), self.n_components)
        require_components(found.subspace)
        attributes = self._attributes(found.subspace, schema, sums.rows.dtype) | {
            "ratio_": found.ratio,
            "mu_": found.mu,
            "signal_variance_": found.subspace.variance,
            "noise_variance_": found.noise,
        }
        return Fitted(attributes, SubspaceDetails(found.subspace, parameters_of(self, self._fixed), sums))


def share_of(mu: Any) -> float:
    """The penalty as a share of the noise variance."""
    if isinstance(mu, str):
        _validation.check_choice("mu", mu, ("auto",))
        return SHARE
    return _validation.check_number("mu", mu, 'a number of at least 0, or "auto"', least=0.0)


def parts_of(noise: Any) -> list[tuple[str, Any, float]]:
    """Name, function or rows, and weight of everything that is noise."""
    if noise is None:
        raise ValueError(f"noise=None, but components are to ignore something: {ALLOWED}; without, use KernelPCA")
    if isinstance(noise, list | tuple) and len(noise) == 0:
        raise ValueError(f"noise={noise!r} is empty; {ALLOWED}")
    if not _is_list(noise):
        return [_part("noise", noise)]
    return [_part(f"noise[{i}]", part) for i, part in enumerate(noise)]


def _is_list(noise: Any) -> bool:
    """Whether this is a list of functions, tables and pairs, and not of rows or blocks."""
    if not isinstance(noise, list | tuple) or _is_pair(noise):
        return False
    return any(callable(part) or _is_pair(part) or getattr(part, "ndim", 0) == 2 for part in noise)


def _is_pair(part: Any) -> bool:
    """Whether this is (function or rows, weight); two numbers are a row."""
    return (
        isinstance(part, tuple) and len(part) == 2 and isinstance(part[1], Real) and not isinstance(part[0], Real)
    )


def _part(name: str, part: Any) -> tuple[str, Any, float]:
    part, weight = part if _is_pair(part) else (part, 1.0)
    named = isinstance(part, Mapping) and any(map(callable, part.values()))
    if part is None or named or isinstance(part, Real):
        raise ValueError(f"{name} is {_validation.format_value(part)}; {ALLOWED}")
    weight = _validation.check_number(f"the weight of {name}", weight, "a number of at least 0", least=0.0)
    return f"{name} ({part.__name__})" if hasattr(part, "__name__") else name, part, weight
