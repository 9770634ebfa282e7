"""Densities of rows, learned by EM steps: Gaussian mixtures of vectors, hidden Markov models of strings."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.cluster import KMeans

from mercer._linalg.tolerance import smallest
from mercer._types import Array, Indices
from mercer.errors import KernelError
from mercer.kernels._base import cosines_from_logs
from mercer.kernels._input_kinds import InputKind
from mercer.kernels._matrices import as_matrix
from mercer.kernels._parameters import SetByRows
from mercer.kernels._structured.base import Objects
from mercer.kernels._structured.strings import Letters, digits
from mercer.rows._table import dense, n_rows, take

# The most rows, or characters of strings, that models are learned from, and the most steps.
MOST_LEARNING_ROWS, MOST_CHARACTERS, MOST_EM_STEPS = 10_000, 200_000, 100
# A model is learned if a step improves the log-likelihood by less than this share.
LEAST_IMPROVEMENT = 1e-6
# Least variance of a component, as a share of the variance of the feature; characters added to each count.
LEAST_COMPONENT_VARIANCE, PSEUDO_COUNT = 1e-4, 0.1
# Probabilities sum to one up to this.
SUM_TOLERANCE = 1e-4
# Numbers in the tables of forward and backward passes, or of pairs of strings.
TABLE_NUMBERS = 2**20
# Arrays of more numbers are not printed.
PRINTED_NUMBERS = 30


@dataclass(frozen=True, eq=False)
class Generative(SetByRows, ABC):
    """A density of rows whose parameters are arrays; abstract."""

    rows: ClassVar[InputKind]

    @classmethod
    @abstractmethod
    def learned(cls, X: Any, size: int, weight: ArrayLike | None = None) -> Self:
        """A model with this number of hidden states, a local maximum of the likelihood up to what keeps it proper.

        A row of weight 2 counts like two. At most 100 steps; variances have a least value, and counts of hidden
        Markov models start at 0.1.
        """

    @abstractmethod
    def log_likelihood(self, X: Any) -> Array:
        """log P(x_i), (n,)."""

    @abstractmethod
    def scores(self, X: Any) -> Array:
        """Derivatives (n, p) of log P(x_i) with respect to all parameters, as if they were free of constraints."""

    @abstractmethod
    def marginal(self, Z: Any, X: Any) -> Array:
        """k(x_i, z_j) = sum_h P(x_i | h) P(z_j | h) P(h) over hidden states h, (n, m)."""

    @abstractmethod
    def cosines(self, Z: Any, X: Any) -> Array:
        """k(x_i, z_j) / sqrt(k(x_i, x_i) k(z_j, z_j)), (n, m), also where k is too large or small."""

    @abstractmethod
    def log_marginal_diag(self, X: Any) -> Array:
        """log sum_h P(x_i | h)² P(h), (n,)."""

    def _written(self, **arrays: Any) -> str:
        """The expression that makes this model, or its size if it has many numbers."""
        tables = {name: np.asarray(value) for name, value in arrays.items()}
        if sum(table.size for table in tables.values()) > PRINTED_NUMBERS:
            shapes = ", ".join(f"{name} {table.shape}" for name, table in tables.items() if table.ndim)
            return f"<{type(self).__name__}: {shapes}>"
        return f"{type(self).__name__}({', '.join(f'{name}={a.tolist()!r}' for name, a in tables.items())})"


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(Generative):
    """P(x) = sum_c w_c N(x; mu_c, diag(v_c)): a mixture of Gaussians with independent features.

    Parameters
    ----------
    weights : array of shape (k,)
        The probabilities w of the components.
    means, variances : array of shape (k, d)
        As in scikit-learn's ``GaussianMixture(covariance_type="diag")``: ``weights_``, ``means_`` and
        ``covariances_``.
    """

    weights: Any
    means: Any
    variances: Any
    rows: ClassVar[InputKind] = "vectors"

    def __repr__(self) -> str:
        return self._written(weights=self.weights, means=self.means, variances=self.variances)

    @classmethod
    def learned(cls, X: Any, size: int, weight: ArrayLike | None = None) -> Self:
        """By the EM algorithm from clusters of k-means, O(n k d) a step; always the same for the same rows."""
        X, w = learning_rows(X, weight)
        V = dense(as_matrix(X)).astype(np.float64)
        center = np.average(V, axis=0, weights=w)
        scale = np.sqrt(np.average((V - center) ** 2, axis=0, weights=w))
        scale[scale == 0.0] = 1.0
        V = (V - center) / scale
        size = min(size, len(np.unique(V, axis=0)))
        clusters = KMeans(size, n_init=1, random_state=0).fit(V, sample_weight=w)
        model = cls._maximized(V, np.eye(size)[clusters.labels_] * w[:, None])
        model = _by_steps(model, lambda model: model._step(V, w))
        return cls(model.weights, center + scale * model.means, scale**2 * model.variances)

    @classmethod
    def _maximized(cls, V: Array, shares: Array) -> Self:
        """The most likely model if these shares (n, k) of rows belong to its components."""
        N = shares.sum(axis=0) + smallest(np.float64)
        means = shares.T @ V / N[:, None]
        spread = [shares[:, c] @ (V - means[c]) ** 2 / N[c] for c in range(len(N))]
        return cls(N / N.sum(), means, np.maximum(spread, LEAST_COMPONENT_VARIANCE))

    def _step(self, V: Array, w: Array) -> tuple[Self, float]:
        """A step of EM, and the log-likelihood before it."""
        joint = self._log_densities(V) + np.log(self._arrays()[0])
        each = logsumexp(joint, axis=1)
        return self._maximized(V, np.exp(joint - each[:, None]) * w[:, None]), float(w @ each)

    def _arrays(self) -> tuple[Array, Array, Array]:
        """Weights (k,), means (k, d) and variances (k, d), checked."""
        w, mu, v = (_numbers(self, name) for name in ("weights", "means", "variances"))
        if not w.size or mu.ndim != 2 or v.shape != mu.shape or w.shape != mu.shape[:1]:
            raise KernelError(
                f"a Mixture has weights {w.shape}, means {mu.shape} and variances {v.shape}; their shapes must be "
                "(k,), (k, d) and (k, d)"
            )
        if (w < 0.0).any() or not (v > 0.0).all():
            raise KernelError("a Mixture has negative weights, or variances that are not positive; pass others")
        _check_sums("weights of a Mixture", w)
        return w, mu, v

    def _standardized(self, X: Any) -> Iterator[Array]:
        """(x - mu_c) / sigma_c for all rows, (n, d), one component c after the other."""
        _, mu, v = self._arrays()
        V = dense(as_matrix(X)).astype(np.float64, copy=False)
        if V.shape[1] != mu.shape[1]:
            raise KernelError(f"X has {V.shape[1]} features and the Mixture {mu.shape[1]}; pass the same number")
        return ((V - center) / np.sqrt(spread) for center, spread in zip(mu, v))

    def _log_densities(self, X: Any) -> Array:
        """log N(x; mu_c, diag(v_c)), (n, k)."""
        squares = np.stack([np.einsum("nd,nd->n", z, z) for z in self._standardized(X)], axis=1)
        return np.asarray(-0.5 * (squares + np.log(2.0 * np.pi * self._arrays()[2]).sum(axis=1)))

    def log_likelihood(self, X: Any) -> Array:
        """log P(x_i), (n,)."""
        return np.asarray(logsumexp(self._log_densities(X), b=self._arrays()[0], axis=1))

    def scores(self, X: Any) -> Array:
        """Derivatives (n, k + 2kd) with respect to weights, means and standard deviations; O(n k d)."""
        w, _, v = self._arrays()
        z = np.stack(list(self._standardized(X)), axis=1)
        logs = self._log_densities(X)
        ratio = np.exp(logs - logsumexp(logs, b=w, axis=1, keepdims=True))
        share = (ratio * w)[:, :, None] / np.sqrt(v)
        parts = ratio, share * z, share * (z * z - 1.0)
        return np.concatenate([part.reshape(len(z), np.prod(part.shape[1:], dtype=int)) for part in parts], axis=1)

    def marginal(self, Z: Any, X: Any) -> Array:
        """sum_c w_c P(x_i | c) P(z_j | c), (n, m), O(n m k)."""
        with np.errstate(over="ignore"):
            return self._roots(X, 0.0) @ self._roots(Z, 0.0).T

    def cosines(self, Z: Any, X: Any) -> Array:
        """The same, of rows divided by their norms."""
        left, right = (self._roots(rows, 0.5 * self.log_marginal_diag(rows)[:, None]) for rows in (X, Z))
        return np.asarray(left @ right.T)

    def _roots(self, X: Any, norm: Array | float) -> Array:
        """sqrt(w_c) P(x_i | c) / exp(norm), (n, k)."""
        return np.asarray(np.exp(self._log_densities(X) - norm) * np.sqrt(self._arrays()[0]))

    def log_marginal_diag(self, X: Any) -> Array:
        """log sum_c w_c P(x_i | c)², (n,)."""
        return np.asarray(logsumexp(2.0 * self._log_densities(X), b=self._arrays()[0], axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class HiddenMarkov(Generative):
    """P(s) = sum_h start(h_1) emission(h_1, s_1) prod_t transition(h_(t-1), h_t) emission(h_t, s_t).

    The sum runs over all sequences h of as many hidden states as the string s has characters.

    Parameters
    ----------
    start : array of shape (k,)
        Probabilities of the first state.
    transition : array of shape (k, k)
        Probabilities of the next state, a row for each state.
    emission : array of shape (k, a)
        Probabilities of the characters, a row for each state.
    alphabet : str
        The a characters. Others are taken as not observed.
    """

    start: Any
    transition: Any
    emission: Any
    alphabet: str
    rows: ClassVar[InputKind] = "objects"

    def __repr__(self) -> str:
        arrays = {"start": self.start, "transition": self.transition, "emission": self.emission}
        return self._written(**arrays, alphabet=self.alphabet)

    @classmethod
    def learned(cls, X: Any, size: int, weight: ArrayLike | None = None) -> Self:
        """By the EM algorithm (Baum and Welch) from a fixed start, O(N k²) a step for N characters.

        Of more than 200,000 characters, evenly spaced rows with about as many.
        """
        texts, w = learning_rows(X, weight)
        kept = _evenly(len(texts), int(MOST_CHARACTERS * len(texts) / max(sum(map(len, texts)), 1)))
        texts, w = [texts[i] for i in kept], w[kept]
        letters = Letters.of(texts)
        alphabet = letters.distinct()
        if not len(alphabet):
            raise KernelError(
                "all strings are empty; a hidden Markov model is learned from strings with characters"
            )
        rng = np.random.default_rng(0)
        often = np.bincount(digits(letters.code, alphabet)[0]) + PSEUDO_COUNT
        emission = often * rng.uniform(0.5, 1.5, (size, len(often)))
        parts = np.ones(size), np.eye(size) + rng.random((size, size)), emission
        model = cls._of_counts(parts, "".join(map(chr, alphabet.tolist())))
        return _by_steps(model, lambda model: model._step(texts, w))

    def _step(self, X: list[str], w: Array) -> tuple[Self, float]:
        """A step of EM, and the log-likelihood before it: a score times its parameter is an expected count."""
        parameters, flat = self._arrays(), w @ self.scores(X)
        cuts = np.cumsum([a.size for a in parameters])[:-1]
        counts = [a * d.reshape(a.shape) + PSEUDO_COUNT for a, d in zip(parameters, np.split(flat, cuts))]
        return self._of_counts(counts, self.alphabet), float(w @ self.log_likelihood(X))

    @classmethod
    def _of_counts(cls, counts: Iterable[Array], alphabet: str) -> Self:
        """The model whose start, transition and emission are shares of these counts."""
        start, transition, emission = (a / a.sum(axis=-1, keepdims=True) for a in counts)
        return cls(start, transition, emission, alphabet)

    def _arrays(self) -> tuple[Array, Array, Array]:
        """Start (k,), transition (k, k) and emission (k, a), checked."""
        self._check_alphabet()
        start, A, E = (_numbers(self, name) for name in ("start", "transition", "emission"))
        k = start.size
        if not k or start.ndim != 1 or A.shape != (k, k) or E.shape != (k, len(self.alphabet)):
            raise KernelError(
                f"a HiddenMarkov has start {start.shape}, transition {A.shape}, emission {E.shape} and "
                f"{len(self.alphabet)} characters; their shapes must be (k,), (k, k) and (k, {len(self.alphabet)})"
            )
        if min(start.min(), A.min(), E.min(initial=0.0)) < 0.0:
            raise KernelError("a HiddenMarkov has negative probabilities; pass numbers >= 0")
        for name, table in (("start", start), ("transition", A), ("emission", E)):
            if table.size:
                _check_sums(f"{name} of a HiddenMarkov", table)
        return start, A, E

    def _check_alphabet(self) -> None:
        if not isinstance(self.alphabet, str) or len(set(self.alphabet)) < len(self.alphabet):
            raise KernelError(f"alphabet={self.alphabet!r}; it must be a string without repeated characters")

    def _tables(self, X: Objects) -> Iterator[tuple[Indices, "Passes"]]:
        """Strings in descending length, few at a time: which, and their forward and backward passes."""
        letters, arrays = Letters.of(X), self._arrays()
        coded = self._coded(letters)
        order = np.argsort(-letters.sizes, kind="stable")
        first = 0
        while first < len(order):
            longest = max(int(letters.sizes[order[first]]), 1)
            some = order[first : first + max(TABLE_NUMBERS // (longest * len(arrays[0])), 1)]
            yield some, Passes.of(*arrays, coded.padded(0, some).T, letters.sizes[some])
            first += len(some)

    def _coded(self, letters: Letters) -> Letters:
        """Characters as positions in the alphabet; its length for others."""
        self._check_alphabet()
        return letters.in_alphabet(np.array(list(map(ord, self.alphabet)), np.uint32))

    def log_likelihood(self, X: Any) -> Array:
        """log P(s_i), (n,); O(N k²) for N characters."""
        found = np.zeros(len(X))
        for some, passes in self._tables(X):
            found[some] = passes.log_likelihood()
        return found

    def scores(self, X: Any) -> Array:
        """Derivatives (n, k + k² + ka) with respect to start, transition and emission; O(N k²)."""
        start, A, E = self._arrays()
        found = np.zeros((len(X), start.size + A.size + E.size))
        for some, passes in self._tables(X):
            _refuse_impossible(passes.log_likelihood(), some)
            found[some] = passes.scores()
        return found

    def marginal(self, Z: Any, X: Any) -> Array:
        """k of strings of the same length, 0 for others; O(k² length) for a pair."""
        return np.exp(self._log_marginal(Z, X))

    def cosines(self, Z: Any, X: Any) -> Array:
        """From logarithms."""
        diagonals = self.log_marginal_diag(X), self.log_marginal_diag(Z)
        return np.asarray(cosines_from_logs(self._log_marginal(Z, X), *diagonals))

    def _log_marginal(self, Z: Any, X: Any) -> Array:
        """Of all hidden states of strings of the same length; log 0 for others; O(k² length) for a pair."""
        rows, centers, k = Letters.of(X), Letters.of(Z), len(self._arrays()[0])
        found = np.full((rows.n_objects, centers.n_objects), -np.inf)
        for length in np.intersect1d(rows.sizes, centers.sizes):
            j = np.flatnonzero(centers.sizes == length)
            for i in _pieces(np.flatnonzero(rows.sizes == length), TABLE_NUMBERS // (len(j) * k)):
                s, t = (self._coded(each).padded(0, of).T for each, of in ((rows, i), (centers, j)))
                found[np.ix_(i, j)] = self._along(s[:, :, None], t[:, None, :])
        return found

    def log_marginal_diag(self, X: Any) -> Array:
        """log sum_h P(s_i | h)² P(h), (n,)."""
        letters = Letters.of(X)
        found, coded = np.zeros(letters.n_objects), self._coded(letters)
        for length in np.unique(letters.sizes):
            i = np.flatnonzero(letters.sizes == length)
            table = coded.padded(0, i).T
            found[i] = self._along(table, table)
        return found

    def _along(self, s: NDArray[Any], t: NDArray[Any]) -> Array:
        """F_1 = start E(s_1) E(t_1), F_i = E(s_i) E(t_i) (F_(i-1) transition); log of the sum (...) of the last F.

        F sums to one after each step, and what it was divided by is counted in logarithms.
        """
        start, A, E = self._arrays()
        observed = np.vstack([E.T, np.ones(len(start))])
        F = np.broadcast_to(start, (*np.broadcast_shapes(s.shape[1:], t.shape[1:]), len(start)))
        logs = np.zeros(F.shape[:-1])
        for step, (a, b) in enumerate(zip(s, t)):
            F = (F @ A if step else F) * observed[a] * observed[b]
            total = F.sum(axis=-1)
            with np.errstate(divide="ignore"):
                logs += np.log(total)
            F = F / np.where(total > 0.0, total, 1.0)[..., None]
        return logs


@dataclass(frozen=True)
class Passes:
    """Scaled forward and backward passes over strings of descending length, (length, n, k) each.

    ``ahead`` is P(h_t | s_1 ... s_(t-1)), ``here`` the same given s_t, too, and ``later`` is
    P(s_(t+1) ... | h_t) divided by ``share`` (length, n) of the later characters, P(s_t | s_1 ... s_(t-1)).
    ``digit`` (length, n) are the characters, and ``observed`` (a + 1, k) their probabilities.
    """

    digit: NDArray[Any]
    observed: Array
    ahead: Array
    here: Array
    later: Array
    share: Array
    sizes: Indices

    @classmethod
    def of(cls, start: Array, A: Array, E: Array, digit: NDArray[Any], sizes: Indices) -> "Passes":
        observed = np.vstack([E.T, np.ones(len(start))])
        shape = (*digit.shape, len(start))
        ahead, here, later, share = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.ones(digit.shape)
        n_at = [int((sizes > t).sum()) for t in range(len(digit))]
        for t, n in enumerate(n_at):
            ahead[t, :n] = here[t - 1, :n] @ A if t else start
            joint = ahead[t, :n] * observed[digit[t, :n]]
            share[t, :n] = joint.sum(axis=1)
            here[t, :n] = joint / np.where(share[t, :n] > 0.0, share[t, :n], 1.0)[:, None]
        for t in reversed(range(len(digit))):
            later[t, : n_at[t]] = 1.0
            n = n_at[t + 1] if t + 1 < len(digit) else 0
            if n:
                after = observed[digit[t + 1, :n]] * later[t + 1, :n]
                later[t, :n] = after @ A.T / np.where(share[t + 1, :n] > 0.0, share[t + 1, :n], 1.0)[:, None]
        return cls(digit, observed, ahead, here, later, share, sizes)

    def log_likelihood(self) -> Array:
        """The sum (n,) of the logarithms of all shares."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.share).sum(axis=0))

    def scores(self) -> Array:
        """Derivatives (n, p) with respect to start, transition and emission."""
        length, n, k = self.ahead.shape
        if not length:
            return np.zeros((n, k + k * k + k * (len(self.observed) - 1)))
        later = self.later / self.share[:, :, None]
        emitted = self.observed[self.digit] * later
        moves = np.matmul(self.here[:-1].transpose(1, 2, 0), emitted[1:].transpose(1, 0, 2))
        emissions = np.zeros((n, k, len(self.observed)))
        for t in range(length):
            emissions[np.arange(n), :, self.digit[t]] += self.ahead[t] * later[t]
        return np.concatenate([emitted[0], moves.reshape(n, -1), emissions[:, :, :-1].reshape(n, -1)], axis=1)


def _numbers(model: Generative, name: str) -> Array:
    """A parameter of the model as an array of finite numbers."""
    try:
        found = np.asarray(getattr(model, name), np.float64)
    except (TypeError, ValueError):
        raise KernelError(f"{name} of a {type(model).__name__} is no array of numbers; pass one") from None
    if not np.isfinite(found).all():
        raise KernelError(f"{name} of a {type(model).__name__} has NaN or infinity; pass finite numbers")
    return found


def _check_sums(name: str, table: Array) -> None:
    """Each row sums to one."""
    sums = np.atleast_1d(table.sum(axis=-1))
    worst = int(np.abs(sums - 1.0).argmax())
    if abs(sums[worst] - 1.0) > SUM_TOLERANCE:
        raise KernelError(f"{name}, row {worst}, sum to {sums[worst]:.6g}; they must sum to 1: divide by the sum")


def _pieces(i: Indices, most: int) -> Iterator[Indices]:
    """At most ``most`` of the rows i at a time, at least one."""
    for first in range(0, len(i), max(most, 1)):
        yield i[first : first + max(most, 1)]


def _refuse_impossible(logs: Array, rows: Indices) -> None:
    """All strings have a probability above zero."""
    if np.isneginf(logs).any():
        raise KernelError(
            f"row {rows[int(logs.argmin())]} has probability 0 under the hidden Markov model, which has no scores "
            "there; give every character a positive probability"
        )


def learning_rows(X: Any, weight: ArrayLike | None) -> tuple[Any, Array]:
    """At most 10,000 evenly spaced rows of positive weight, and their weights."""
    w = np.ones(n_rows(X)) if weight is None else np.asarray(weight, np.float64)
    rows = np.flatnonzero(w > 0.0)
    if not len(rows):
        raise KernelError("a generative model is to be learned from no rows; pass at least one")
    rows = rows[_evenly(len(rows), MOST_LEARNING_ROWS)]
    return take(X, rows), w[rows]


def _evenly(n: int, most: int) -> Indices:
    """At most ``most`` of n places, evenly spaced, at least one."""
    return np.linspace(0, n - 1, min(n, max(most, 1))).round().astype(np.intp)


M = TypeVar("M", bound=Generative)


def _by_steps(model: M, step: Callable[[M], tuple[M, float]]) -> M:
    """EM until the log-likelihood changes little."""
    last = -np.inf
    for _ in range(MOST_EM_STEPS):
        better, log_likelihood = step(model)
        if log_likelihood - last <= LEAST_IMPROVEMENT * abs(log_likelihood):
            break
        model, last = better, log_likelihood
    return model
