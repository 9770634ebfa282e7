"""Synthetic problems with known distributions: densities, Bayes errors, noise-free functions."""

from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

RandomState = int | np.random.Generator | np.random.RandomState | None


def make_twonorm(
    n_rows: int = 1000,
    *,
    n_features: int = 20,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw x | y ~ N(y a, I) with a = 2/sqrt(d) in every coordinate, y = ±1 with equal probability.

    The means are 4 apart for every d, so the Bayes rule is the sign of ``sum(x)`` and the Bayes
    error is Phi(-2) = 2.28 %. Cost O(n d).

    Parameters
    ----------
    n_rows : int
        Number of rows n.
    n_features : int
        Number of features d; 20 in the original.
    random_state : int, Generator, RandomState or None
        Source of randomness; equal seeds give equal data.
    dtype : dtype
        Type of X.

    Returns
    -------
    X : array (n, d)
    y : array (n,) of -1 and +1

    References
    ----------
    Breiman (1996), "Bias, variance, and arcing classifiers", Technical Report 460, Berkeley.

    Examples
    --------
    >>> from mercer.datasets import make_twonorm
    >>> X, y = make_twonorm(500, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((500, 20), [-1, 1])
    """
    rng = _generator(random_state)
    y = _coin(rng, n_rows)
    X = _normal(rng, (n_rows, n_features), dtype)
    X += _column(2 / np.sqrt(n_features) * y, dtype)
    return X, y


def make_ringnorm(
    n_rows: int = 1000,
    *,
    n_features: int = 20,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw x | +1 ~ N(0, 4 I) and x | -1 ~ N(a, I) with a = 2/sqrt(d) in every coordinate.

    One class is a small ball inside the other; the Bayes rule is a sphere and no linear rule
    comes near it. For d = 20 the Bayes error is about 1.3 %. Cost O(n d).

    Parameters
    ----------
    n_rows : int
        Number of rows n.
    n_features : int
        Number of features d; 20 in the original.
    random_state : int, Generator, RandomState or None
        Source of randomness; equal seeds give equal data.
    dtype : dtype
        Type of X.

    Returns
    -------
    X : array (n, d)
    y : array (n,) of -1 and +1

    References
    ----------
    Breiman (1996), "Bias, variance, and arcing classifiers", Technical Report 460, Berkeley.
    """
    rng = _generator(random_state)
    y = _coin(rng, n_rows)
    X = _normal(rng, (n_rows, n_features), dtype)
    X *= _column(np.where(y > 0, 2, 1), dtype)
    X += _column(np.where(y > 0, 0, 2 / np.sqrt(n_features)), dtype)
    return X, y


def make_waveform(
    n_rows: int = 1000,
    *,
    n_classes: Literal[2, 3] = 2,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw x = u h_a + (1 - u) h_b + N(0, I), a mixture of two of three triangular waves.

    The waves have 21 points, height 6 and peaks at 11, 15 and 7; u is uniform on (0, 1). The
    classes 0, 1, 2 mix the waves (1, 2), (1, 3), (2, 3) and are equally likely. Bayes error with
    three classes: about 14 %. Cost O(21 n).

    Parameters
    ----------
    n_rows : int
        Number of rows n.
    n_classes : {2, 3}
        With 2, class 0 is labeled +1 and the rest -1; with 3, y holds 0, 1, 2.
    random_state : int, Generator, RandomState or None
        Source of randomness; equal seeds give equal data.
    dtype : dtype
        Type of X.

    Returns
    -------
    X : array (n, 21)
    y : array (n,)

    References
    ----------
    Breiman, Friedman, Olshen, Stone (1984), "Classification and Regression Trees", section 2.6.1.
    """
    if n_classes not in (2, 3):
        raise ValueError(f"n_classes is {n_classes!r}; the waveform problem has 2 or 3 classes")
    rng = _generator(random_state)
    waves = _waves()
    label = rng.integers(0, 3, n_rows)
    u = rng.uniform(size=(n_rows, 1))
    first, second = np.array([[0, 1], [0, 2], [1, 2]]).T
    X = _normal(rng, (n_rows, waves.shape[1]), dtype)
    X += (u * waves[first[label]] + (1 - u) * waves[second[label]]).astype(dtype)
    return X, label if n_classes == 3 else np.where(label == 0, 1, -1)


def make_banana(
    n_rows: int = 1000,
    *,
    noise: float = 0.32,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw two interlocking half circles of radius 1 with N(0, noise² I) around them.

    With t uniform on (0, pi), class +1 lies around (cos t, sin t) and class -1 around
    (1 - cos t, 1/2 - sin t). The default noise gives a Bayes error of about 10 %, like that of the ``banana`` set
    of the IDA collection; the rows are not those of that set. Cost O(n).

    Parameters
    ----------
    n_rows : int
        Number of rows n.
    noise : float
        Standard deviation around the crescents.
    random_state : int, Generator, RandomState or None
        Source of randomness; equal seeds give equal data.
    dtype : dtype
        Type of X.

    Returns
    -------
    X : array (n, 2)
    y : array (n,) of -1 and +1
    """
    rng = _generator(random_state)
    y = _coin(rng, n_rows)
    t = rng.uniform(0, np.pi, n_rows)
    upper = np.column_stack([np.cos(t), np.sin(t)])
    crescents = np.where(y[:, None] > 0, upper, np.array([1, 0.5]) - upper)
    return (crescents + noise * rng.standard_normal((n_rows, 2))).astype(dtype), y


def make_two_spirals(
    n_rows: int = 194, *, noise: float = 0.0, random_state: RandomState = None, dtype: DTypeLike = np.float64
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two spirals of three turns, one rotated by 180 degrees against the other.

    x_i = 6.5 (104 - i)/104 · (sin(i pi/16), cos(i pi/16)) for i from 0 to 96 is class +1, and -x_i
    class -1. With 194 rows i is an integer and the set is the original one; with another number of rows, i is
    spaced evenly over the same range. Cost O(n).

    Parameters
    ----------
    n_rows : int
        Number of rows n; if n is odd, class +1 has one more row.
    noise : float
        Standard deviation of Gaussian noise added to every coordinate; 0 adds none.
    random_state : int, Generator, RandomState or None
        Source of the noise.
    dtype : dtype
        Type of X.

    Returns
    -------
    X : array (n, 2), first the rows of class +1
    y : array (n,) of -1 and +1

    References
    ----------
    Lang, Witbrock (1988), "Learning to tell two spirals apart", Proc. Connectionist Models Summer School.
    """
    rng = _generator(random_state)
    sizes = (n_rows + 1) // 2, n_rows // 2
    X = np.vstack([_spiral(sizes[0]), -_spiral(sizes[1])])
    X = X + noise * rng.standard_normal(X.shape)
    return X.astype(dtype), np.repeat([1, -1], sizes)


def make_sinc(
    n_rows: int = 100, *, noise: float = 0.1, random_state: RandomState = None, dtype: DTypeLike = np.float64
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw y = sin(x)/x + N(0, noise²) with x uniform on (-10, 10).

    Parameters
    ----------
    n_rows : int
        Number of rows n.
    noise : float
        Standard deviation of the noise in y.
    random_state : int, Generator, RandomState or None
        Source of randomness; equal seeds give equal data.
    dtype : dtype
        Type of X and y.

    Returns
    -------
    X : array (n, 1)
    y : array (n,)

    Notes
    -----
    Errors of a fit are measured against the noise-free ``np.sinc(X[:, 0] / np.pi)``. Cost O(n).
    """
    rng = _generator(random_state)
    x = rng.uniform(-10, 10, n_rows)
    y = np.sinc(x / np.pi) + noise * rng.standard_normal(n_rows)
    return x[:, None].astype(dtype), y.astype(dtype)


def make_clusters(
    n_rows: int = 10_000,
    *,
    n_clusters: int = 32,
    n_features: int = 20,
    n_informative: int = 10,
    separation: float = 2.0,
    flip: float = 0.01,
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw x = (c_k, 0) + N(0, I), y = (-1)^k: Gaussian clusters, every other one of class +1.

    The centers c_k ~ N(0, separation² I) live in the first ``n_informative`` features, the others
    are noise; then a random share ``flip`` of the labels changes sign, which no rule can predict. With the
    defaults, a support vector machine fitted to 10^4 rows misclassifies 2 to 6 % of new rows, depending on the
    seed. Cost O(n d) time; 10^6 rows of 20 features take 80 MB in float32.

    Parameters
    ----------
    n_rows : int
        Number of rows n.
    n_clusters : int
        Number of Gaussian clusters, equally likely.
    n_features : int
        Number of features d.
    n_informative : int
        Number of features in which the centers differ.
    separation : float
        Standard deviation of the coordinates of the centers.
    flip : float
        Probability that a label is flipped.
    random_state : int, Generator, RandomState or None
        Source of the centers and of the rows. Two calls with different seeds are two different
        problems: draw training and test rows in one call and split them.
    dtype : dtype
        Type of X.

    Returns
    -------
    X : array (n, d)
    y : array (n,) of -1 and +1

    Examples
    --------
    >>> from mercer.datasets import make_clusters
    >>> X, y = make_clusters(1000, random_state=0, dtype="float32")
    >>> X.shape, X.dtype.name
    ((1000, 20), 'float32')
    """
    if not 0 <= n_informative <= n_features:
        raise ValueError(f"n_informative is {n_informative}; it must lie between 0 and n_features={n_features}")
    rng = _generator(random_state)
    centers = separation * _normal(rng, (n_clusters, n_informative), dtype)
    cluster = rng.integers(0, n_clusters, n_rows)
    X = _normal(rng, (n_rows, n_features), dtype)
    X[:, :n_informative] += centers[cluster]
    sign = np.where(rng.uniform(size=n_rows) < flip, -1, 1)
    return X, sign * (1 - 2 * (cluster % 2))


def make_fisher_worst_case(
    n_rows: int = 400,
    *,
    eps: float = 0.1,
    bulk: Literal["mixed", "reversed"] = "mixed",
    random_state: RandomState = None,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows in R² split by the line x_2 = 0 on which Fisher's direction is almost useless.

    With eta = k/(n/2), k = floor(eps n/8), A = 8/eta and B = 64 A/eps, class +1 has

    * k rows at (-A, 1) and k rows at (0, B), the outliers;
    * its bulk at (x, 1), |x| <= 1,

    and class -1 has the outliers mirrored at the origin. The outliers alone determine the class means and the
    within-class scatter, so w = S_W^{-1} (m_+ - m_-) is about (-1/A, 1/B): the bulk is projected onto its x,
    although it is separated by its x_2.

    * ``bulk="mixed"``: the bulk of class -1 is (x, -1) with the same x. Every threshold on w'x, and on -w'x,
      misclassifies more than 1/2 - eps of the rows.
    * ``bulk="reversed"``: x > 1/2, and the bulk of class -1 is (-x, -1). Every threshold on w'x misclassifies more
      than 1/2 - eps and the least-squares threshold more than 1 - eps; flipping the sign of w repairs it.

    Parameters
    ----------
    n_rows : int
        Number of rows n: even, at least 8/eps.
    eps : float
        The distance to the worst error, in (0, 1/2).
    bulk : {"mixed", "reversed"}
        What the projection does to the bulk of the rows.
    random_state : int, Generator, RandomState or None
        Source of the x of the bulk and of the order of rows.
    dtype : dtype
        Type of X.

    Returns
    -------
    X : array (n, 2)
    y : array (n,) of -1 and +1

    References
    ----------
    Devroye, Györfi, Lugosi (1996), "A Probabilistic Theory of Pattern Recognition", Problem 4.9;
    Mika (2002), section 3.2.3. The construction is our own.
    """
    _check_worst_case(n_rows, eps, bulk)
    rng = _generator(random_state)
    far = _far_rows(n_rows, eps)
    x = rng.uniform(0.5 if bulk == "reversed" else -1, 1, n_rows // 2 - len(far))
    upper = np.column_stack([x, np.ones_like(x)])
    lower = -upper if bulk == "reversed" else upper * [1, -1]
    X = np.vstack([upper, far, lower, -far])
    y = np.repeat([1, -1], n_rows // 2)
    order = rng.permutation(n_rows)
    return X[order].astype(dtype), y[order]


def make_words(
    n_sequences: int = 100,
    *,
    noise: float = 0.25,
    random_state: RandomState = None,
) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """Draw sequences of points in the plane: words of three sounds of different lengths.

    A sound is the upper or lower half of a ring of radius 1 or 2: its points are spread evenly over the half ring,
    plus N(0, noise²) in each coordinate, so that no single Gaussian is like it. The words "up", "down" and
    "turn" are the sounds (0, 1, 2), (0, 2, 1) and (3, 1, 2) and equally likely; two of them differ only in the
    order of sounds. A sound lasts for 3 frames plus a geometric number with mean 4. Cost O(n).

    Parameters
    ----------
    n_sequences : int
        Number of sequences n.
    noise : float
        Standard deviation around the rings.
    random_state : int, Generator, RandomState or None
        Source of randomness; equal seeds give equal data.

    Returns
    -------
    X : list of n arrays (T_i, 2)
    y : array (n,) of words

    Examples
    --------
    >>> from mercer.datasets import make_words
    >>> X, y = make_words(3, random_state=0)
    >>> [len(x) for x in X], y.tolist()
    ([11, 28, 21], ['up', 'turn', 'turn'])
    """
    rng = _generator(random_state)
    y = rng.choice(list(WORDS), n_sequences)
    return [_spoken(rng, WORDS[word], noise) for word in y], y


# Words of make_words and their sounds: ring is sound % 2, half of it sound // 2.
WORDS = {"down": (0, 2, 1), "turn": (3, 1, 2), "up": (0, 1, 2)}


def _spoken(rng: np.random.Generator, sounds: tuple[int, ...], noise: float) -> NDArray[Any]:
    """Return the points of one word (T, 2)."""
    sound = np.repeat(sounds, 3 + rng.geometric(0.2, size=len(sounds)) - 1)
    angle = np.pi * (rng.uniform(size=len(sound)) + sound // 2)
    radius = 1.0 + sound % 2
    circle = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.asarray(circle + noise * rng.normal(size=circle.shape))


def _generator(random_state: RandomState) -> np.random.Generator:
    """Return a Generator from a seed, a RandomState or a Generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    return np.random.default_rng(random_state)


def _coin(rng: np.random.Generator, n: int) -> NDArray[Any]:
    """Return n labels -1 or +1 with equal probability."""
    return rng.choice([-1, 1], n)


def _normal(rng: np.random.Generator, shape: tuple[int, int], dtype: DTypeLike) -> NDArray[Any]:
    """Draw standard normal numbers, directly in single precision if requested."""
    if np.dtype(dtype) == np.float32:
        return rng.standard_normal(shape, dtype=np.float32)
    return rng.standard_normal(shape).astype(dtype)


def _column(values: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Turn (n,) into (n, 1) of the given type."""
    return values[:, None].astype(dtype)


def _waves() -> NDArray[Any]:
    """Return the three triangular waves of the waveform problem, (3, 21)."""
    t = np.arange(1, 22)
    peaks = np.array([[11], [15], [7]])
    waves: NDArray[Any] = np.maximum(6 - np.abs(t - peaks), 0)
    return waves


def _spiral(n: int) -> NDArray[Any]:
    """Return n points of the first spiral from the outside in, (n, 2)."""
    i = np.linspace(0, 96, n)
    radius = 6.5 * (104 - i) / 104
    angle = i * np.pi / 16
    return np.column_stack([radius * np.sin(angle), radius * np.cos(angle)])


def _far_rows(n_rows: int, eps: float) -> NDArray[Any]:
    """Return the outliers of class +1, (2k, 2): k to the left, k above."""
    k = int(eps * n_rows / 8)
    left = 8 * (n_rows / 2) / k
    return np.repeat([[-left, 1], [0, 64 * left / eps]], k, axis=0)


def _check_worst_case(n_rows: int, eps: float, bulk: str) -> None:
    """Reject parameters for which the construction fails."""
    if not 0 < eps < 0.5:
        raise ValueError(f"eps is {eps}; it must lie in (0, 1/2)")
    if n_rows % 2 or eps * n_rows < 8:
        raise ValueError(f"n_rows is {n_rows}; eps={eps} needs an even number of at least {8 / eps:.0f} rows")
    if bulk not in ("mixed", "reversed"):
        raise ValueError(f"bulk is {bulk!r}; it must be 'mixed' or 'reversed'")
