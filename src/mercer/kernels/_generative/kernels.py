"""Kernels from models of how rows arise: Fisher scores, and sums over hidden states."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from mercer._linalg.eigen import symmetric_eigen
from mercer._types import Array, Floats
from mercer.errors import KernelError
from mercer.kernels._base import Kernel, Normable
from mercer.kernels._generative.densities import Generative, HiddenMarkov, Mixture, learning_rows
from mercer.kernels._input_kinds import InputKind
from mercer.kernels._matrices import Matrix, precision_of
from mercer.kernels._parameters import SetByRows, integer
from mercer.kernels._structured.base import Counting, Structured
from mercer.kernels._structured.strings import strings

# Added to the eigenvalues of the correlations of scores before they are inverted.
WHITENING_RIDGE = 1e-3
DENSITY_MODELS: dict[str, type[Generative]] = {"mixture": Mixture, "markov": HiddenMarkov}


class FromModel(Structured):
    """A kernel of rows by a model of how they arise, which the rows set if it is a word; abstract."""

    model: Any
    size: Any

    @property
    def input_kind(self) -> InputKind:
        return self._kind().rows

    @property
    def averages(self) -> bool:
        return self.takes_vectors

    @property
    def resolved(self) -> bool:
        return isinstance(self.model, Generative)

    def check_rows(self, X: Any) -> None:
        if self.input_kind == "objects":
            strings(X)

    def _kind(self) -> type[Generative]:
        """The class of the model."""
        if isinstance(self.model, Generative):
            return type(self.model)
        if not isinstance(self.model, str) or self.model not in DENSITY_MODELS:
            raise KernelError(f'model={self.model!r}; it must be "mixture", "markov", a Mixture or a HiddenMarkov')
        return DENSITY_MODELS[self.model]

    def _resolved_model(self) -> Generative:
        if not isinstance(self.model, Generative):
            self._kind()
            raise KernelError(f'model="{self.model}" is learned from data; call candidates(X) first, or pass one')
        return self.model

    def _learned(self, X: Any, weight: ArrayLike | None) -> Generative:
        """The model, learned from the rows X if it is not given."""
        if isinstance(self.model, Generative):
            return self.model
        return self._kind().learned(X, integer("size", self.size, least=1), weight)


@dataclass(frozen=True, eq=False, repr=False)
class Whitening(SetByRows):
    """W (p,) or (p, q): scores f are replaced by f W, so that f W W'f' is f I^(-1) f' for the information I."""

    W: Any

    def __repr__(self) -> str:
        return f"<Whitening of {len(self.W)} scores>"

    @classmethod
    def of(cls, F: Array, w: Array, *, full: bool) -> "Whitening":
        """From scores F (n, p) of rows with weights w (n,); those that are always zero stay so."""
        size = np.sqrt(w @ F**2 / w.sum())
        inverse = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0)
        if not full:
            return cls(inverse)
        G = F * inverse * np.sqrt(w / w.sum())[:, None]
        values, vectors = symmetric_eigen(G.T @ G)
        return cls(inverse[:, None] * vectors / np.sqrt(np.maximum(values, 0.0) + WHITENING_RIDGE))

    def applied(self, F: Array) -> Array:
        """F W."""
        W = np.asarray(self.W, np.float64)
        if W.ndim not in (1, 2) or len(W) != F.shape[1]:
            raise KernelError(
                f"whiten has shape {W.shape}, but the model has {F.shape[1]} parameters; pass one row each"
            )
        return np.asarray(F * W if W.ndim == 1 else F @ W)


@dataclass(frozen=True)
class ScoreColumns:
    """A column for each score."""

    model: Generative
    whitening: Whitening | None

    def features(self, X: Any) -> list[Matrix]:
        F = self.model.scores(X)
        F = F if self.whitening is None else self.whitening.applied(F)
        return [F.astype(precision_of(X), copy=False)]


class FisherKernel(FromModel, Counting):
    """k(x, z) = f(x)'I^(-1) f(z), f(x) the derivatives of log P(x) with respect to the parameters of a model P.

    Two rows are similar if the same change of the model would make both more likely. P is a mixture of Gaussians,
    for vectors, or a hidden Markov model, for strings; unlabeled rows are enough to learn it. Parameters are
    taken as free: probabilities need not sum to one. Scores f can be listed: n rows cost O(n k d) for a mixture
    of k components of d features, or O(N k²) for N characters and k states, and then one product. For bags of
    vectors use ``MeanMap(FisherKernel())``, whose means of scores are known as Fisher vectors.

    Scores of rows far from the model, and of long strings, are large: compare ``Normalized(FisherKernel())``.

    Jaakkola and Haussler (1999), "Exploiting generative models in discriminative classifiers"; Perronnin and Dance
    (2007), "Fisher kernels on visual vocabularies for image categorization".

    Parameters
    ----------
    model : "mixture", "markov", Mixture or HiddenMarkov
        The words mean that the model is learned from the training rows during the fit: from at most 10,000 evenly
        spaced rows, and for strings about 200,000 characters. It is a local maximum of the likelihood.
    size : int
        The number of components or hidden states of a model that is learned.
    whiten : "diagonal", "full", None, array or Whitening
        "diagonal": each score is divided by its root mean square over the training rows. "full": I is the mean of
        ff' over these rows, with a small multiple of its diagonal added; stores p² numbers for p parameters. None:
        I is the identity. An array (p,) or (p, q): W with WW' = I^(-1).

    Examples
    --------
    >>> one = Mixture(weights=[1.0], means=[[0.0]], variances=[[1.0]])
    >>> FisherKernel(one, whiten=None).block([[2.0]], [[3.0]])
    array([[31.]])

    The scores of 2 are 1 for the weight, 2 for the mean, 2² - 1 for the standard deviation.
    """

    def __init__(self, model: str | Generative = "mixture", size: int = 8, whiten: Any = "diagonal") -> None:
        self.model = model
        self.size = size
        self.whiten = whiten

    @property
    def resolved(self) -> bool:
        return isinstance(self.model, Generative) and not isinstance(self.whiten, str)

    def candidates(self, X: Any, weight: ArrayLike | None = None) -> list[Kernel]:
        """The kernel, with a model and the sizes of scores from the rows X."""
        if self.resolved:
            return [self]
        model = self._learned(X, weight)
        return [clone(self).set_params(model=model, whiten=self._whitening(model, X, weight))]

    def _whitening(self, model: Generative, X: Any, weight: ArrayLike | None) -> Any:
        if not isinstance(self.whiten, str):
            return self.whiten
        if self.whiten not in ("diagonal", "full"):
            raise KernelError(f'whiten="{self.whiten}" is not known; pass "diagonal", "full", None or an array')
        X, w = learning_rows(X, weight)
        return Whitening.of(model.scores(X), w, full=self.whiten == "full")

    def _vocabulary(self, Z: Any) -> ScoreColumns:
        model, whiten = self._resolved_model(), self.whiten
        if isinstance(whiten, str):
            raise KernelError(f'whiten="{whiten}" is determined from data; call candidates(X) first, or pass None')
        return ScoreColumns(
            model, whiten if whiten is None or isinstance(whiten, Whitening) else Whitening(whiten)
        )


class MarginalizedKernel(Normable, FromModel):
    """k(x, z) = sum_h P(x | h) P(z | h) P(h): the probability that a hidden h makes both rows, independently.

    h is the component of a mixture of Gaussians, or all hidden states of a string; strings of different length
    have nothing in common. O(k) for a pair of vectors and a mixture of k components, O(k² L) for a pair of strings
    of length L and k states. Densities may be too small or large for floating point: use
    ``Normalized(MarginalizedKernel())``, which is computed without them.

    Watkins (2000), "Dynamic alignment kernels"; Shawe-Taylor and Cristianini (2004), section 12.1.

    Parameters
    ----------
    model : "mixture", "markov", Mixture or HiddenMarkov
        The words mean that the model is learned from the training rows during the fit: from at most 10,000 evenly
        spaced rows, and for strings about 200,000 characters. It is a local maximum of the likelihood.
    size : int
        The number of components or hidden states of a model that is learned.

    Examples
    --------
    >>> coins = HiddenMarkov([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], [[0.9, 0.1], [0.5, 0.5]], "HT")
    >>> MarginalizedKernel(coins).block(["HT"], ["HH", "HT", "H"]).round(4)
    array([[0.2025, 0.2025, 0.    ]])
    """

    def __init__(self, model: str | Generative = "mixture", size: int = 8) -> None:
        self.model = model
        self.size = size

    def candidates(self, X: Any, weight: ArrayLike | None = None) -> list[Kernel]:
        """The kernel, with a model of the rows X."""
        return [self] if self.resolved else [clone(self).set_params(model=self._learned(X, weight))]

    def cosine_evaluator(self, Z: Any) -> Callable[..., Floats]:
        return partial(_in_precision, partial(self._resolved_model().cosines, Z))

    def log_diag(self, X: Any) -> Floats:
        return self._resolved_model().log_marginal_diag(X)

    def evaluator(self, Z: Any) -> Callable[..., Floats]:
        return partial(_in_precision, partial(self._resolved_model().marginal, Z))

    def diag(self, X: Any) -> Floats:
        return np.exp(_in_precision(self.log_diag, X))


def _in_precision(values: Callable[..., Floats], X: Any, workspace: Floats | None = None) -> Floats:
    """values(X), in the precision of X."""
    return values(X).astype(precision_of(X), copy=False)
