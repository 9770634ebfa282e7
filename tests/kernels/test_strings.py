"""Kernels on strings equal the sums that define them."""

import tracemalloc
from collections import Counter
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.errors import KernelError
from mercer.kernels import KmerSpectrum, LocalAlignment, Mismatch, Normalized, Subsequence, Substrings
from mercer.kernels._structured import strings as counted
from mercer.kernels._structured import subsequences as compared

# All strings of up to six characters of a binary alphabet.
BINARY = ["".join(letters) for n in range(7) for letters in product("ab", repeat=n)]
ODD = ["", "a", "größe", "日本語日本", "🙂🙃🙂", "a\0b\0", "naïve naïve"]
BOOK = ["statistics", "computation"]


def inner(phi, X, Z):
    """phi(x)'phi(z) for features in dictionaries."""
    F, G = [phi(x) for x in X], [phi(z) for z in Z]
    return np.array([[sum(f[u] * g.get(u, 0.0) for u in f) for g in G] for f in F], float).reshape(len(X), len(Z))


def substrings(s, lengths, decay=1.0):
    counts = Counter(s[i : i + l] for l in lengths for i in range(len(s) - l + 1))
    return {u: n * decay ** len(u) for u, n in counts.items()}


def gap_weighted(s, p, decay):
    features = Counter()
    for i in combinations(range(len(s)), p):
        features["".join(s[j] for j in i)] += decay ** (i[-1] - i[0] + 1)
    return features


def mismatched(s, k, m, alphabet):
    kmers = [s[i : i + k] for i in range(len(s) - k + 1) if set(s[i : i + k]) <= set(alphabet)]
    every = map("".join, product(alphabet, repeat=k))
    return {b: sum(sum(x != y for x, y in zip(kmer, b)) <= m for kmer in kmers) for b in every}


def aligned(s, t, beta, match, mismatch, gap, extension):
    """The sum over all sets of aligned pairs of positions, in order."""
    cost = [0.0 if n == 0 else gap + extension * (n - 1) for n in range(10)]
    total = 1.0
    for p in range(1, min(len(s), len(t)) + 1):
        for i, j in product(combinations(range(len(s)), p), combinations(range(len(t)), p)):
            score = sum(match if s[a] == t[b] else mismatch for a, b in zip(i, j))
            score -= sum(cost[b - a - 1] for path in (i, j) for a, b in pairwise(path))
            total += np.exp(beta * score)
    return total


def test_examples_of_the_book_have_its_values():
    for k, value in [(1, 10.0), (2, 4.0), (3, 2.0), (4, 1.0)]:
        assert KmerSpectrum(k=k).block(*[[s] for s in BOOK]) == value
    assert_array_equal(KmerSpectrum(k=3).diag(BOOK), [8.0, 9.0])
    blended = KmerSpectrum(k=3, min_k=1, decay=0.5).block(BOOK, BOOK)
    assert_array_equal(blended, [[6.9375, 2.78125], [2.78125, 4.515625]])
    assert KmerSpectrum(k=5, min_k=1, decay=0.5).block(*[[s] for s in BOOK]) == 2.78515625
    assert KmerSpectrum(k=3, min_k=1).block(*[[s] for s in BOOK]) == 16.0


def test_gap_weighted_values_are_those_of_the_book(way):
    l, words = 0.7, ["cat", "car", "bat", "bar"]
    own, one = 2 * l**4 + l**6, l**4
    expected = [[own, one, one, 0], [one, own, 0, one], [one, 0, own, one], [0, one, one, own]]
    assert_allclose(Subsequence(length=2, decay=l).block(words, words), expected, rtol=1e-14)
    assert_allclose(Normalized(Subsequence(2, 0.5)).block(["cat"], ["car"]), 4 / 9, rtol=1e-14)
    for p, value in [(2, 0.36376953125), (3, 0.04833984375), (4, 0.0048828125)]:
        assert_allclose(Subsequence(p, 0.5).block(*[[s] for s in BOOK]), value, rtol=1e-14)


@pytest.mark.parametrize("rows", [BINARY, ODD])
@pytest.mark.parametrize(("shortest", "longest"), [(1, 1), (3, 3), (1, 3), (2, 7)])
@pytest.mark.parametrize("direct", [0, counted.KMERS_WITH_COLUMNS])
def test_spectrum_counts_common_substrings(monkeypatch, rows, shortest, longest, direct):
    monkeypatch.setattr(counted, "KMERS_WITH_COLUMNS", direct)
    kernel = KmerSpectrum(k=longest, min_k=shortest, decay=0.7)
    expected = inner(lambda s: substrings(s, range(shortest, longest + 1), 0.7), rows, rows[::-1])
    assert_allclose(kernel.block(rows, rows[::-1]), expected, rtol=1e-12, atol=1e-14)


def test_spectrum_is_exact_where_the_number_of_substrings_exceeds_all_integers(rng):
    letters = [chr(c) for c in range(0x4E00, 0x4E00 + 200)]
    base = ["".join(rng.choice(letters, 60)) for _ in range(4)]
    rows = [a[:30] + b[:30] for a in base for b in base]
    # 200^20 is about 2^153.
    kernel = KmerSpectrum(k=20)
    assert_array_equal(kernel.block(rows, rows), inner(lambda s: substrings(s, [20]), rows, rows))


@pytest.mark.parametrize(("shortest", "longest"), [(1, 3), (2, 2), (1, 40)])
def test_aligned_substrings_count_where_they_start_at_the_same_place(rng, shortest, longest):
    rows = ["".join(rng.choice(list("AC"), size)) for size in rng.integers(0, 45, 12)]
    centers = [*rows[:5], "G" + rows[6], rows[7][:20]]
    kernel = KmerSpectrum(k=longest, min_k=shortest, decay=0.9, aligned=True)

    def naive(s, t):
        return sum(
            0.81**size * (s[i : i + size] == t[i : i + size])
            for size in range(shortest, longest + 1)
            for i in range(min(len(s), len(t)) - size + 1)
        )

    expected = [[naive(s, t) for t in centers] for s in rows]
    assert_allclose(kernel.block(rows, centers), expected, rtol=1e-12)
    assert_allclose(kernel.diag(rows), [naive(s, s) for s in rows], rtol=1e-12)


@pytest.mark.parametrize("direct", [0, counted.KMERS_WITH_COLUMNS])
@pytest.mark.parametrize(("k", "m"), [(1, 0), (2, 1), (3, 1), (3, 2)])
def test_mismatch_kernel_equals_sum_over_all_kmers(monkeypatch, rng, direct, k, m):
    monkeypatch.setattr(counted, "KMERS_WITH_COLUMNS", direct)
    rows = ["".join(rng.choice(list("abcx"), n)) for n in (0, 1, 2, 3, 5, 8, 13)]
    expected = inner(lambda s: mismatched(s, k, m, "abc"), rows, rows)
    assert_array_equal(Mismatch(k, m, alphabet="abc").block(rows, rows[::-1]), expected[:, ::-1])


def test_mismatch_kernel_does_not_depend_on_how_strings_are_divided(monkeypatch, rng):
    rows = ["".join(rng.choice(list("abcd"), n)) for n in rng.integers(0, 40, 30)]
    expected = Mismatch(4, 1, "abcd").block(rows, rows[:7])
    monkeypatch.setattr(counted, "NEIGHBORS_AT_ONCE", 100)
    assert_array_equal(Mismatch(4, 1, "abcd").block(rows, rows[:7]), expected)


def test_mismatch_kernel_without_mismatches_is_the_spectrum():
    assert_array_equal(Mismatch(2, 0, "ab").block(BINARY, BINARY), KmerSpectrum(2).block(BINARY, BINARY))


@pytest.fixture(params=["pairs", "features", "parts of features", "features that are not kept"])
def way(request, monkeypatch):
    """The ways in which gap-weighted values are computed."""
    constants = {
        "pairs": {"FEATURES": 0, "FEATURES_PER_CELL": 0},
        "parts of features": {"FEATURE_SLAB": 256},
        "features that are not kept": {"KEPT_NUMBERS": 0},
    }
    for name, value in constants.get(request.param, {}).items():
        monkeypatch.setattr(compared, name, value)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("decay", [0.3, 1.0])
@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_gap_weighted_kernel_equals_sum_over_subsequences(way, decay, p):
    for rows in (BINARY, ODD):
        expected = inner(lambda s: gap_weighted(s, p, decay), rows, rows[::-1])
        assert_allclose(Subsequence(p, decay).block(rows, rows[::-1]), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("decay", [0.4, 1.0])
def test_all_substrings_kernel_is_a_blended_spectrum_of_every_length(decay):
    for rows in (BINARY, ODD):
        expected = KmerSpectrum(k=11, min_k=1, decay=decay).block(rows, rows[::-1])
        assert_allclose(Substrings(decay).block(rows, rows[::-1]), expected, rtol=1e-12)


@pytest.mark.slow
def test_local_alignment_equals_sum_over_alignments():
    rows = BINARY[::9]
    kernel = LocalAlignment(beta=0.7, match=1.5, mismatch=-0.5, gap=1.0, extension=0.3)
    expected = [[aligned(s, t, 0.7, 1.5, -0.5, 1.0, 0.3) for t in rows] for s in rows]
    assert_allclose(kernel.block(rows, rows[::1]), expected, rtol=1e-12)


def test_local_alignment_becomes_the_score_of_smith_and_waterman():
    kernel = LocalAlignment(beta=50.0, match=2.0, mismatch=-1.0, gap=2.0)
    # ACAC-T over ACACT, with one gap in the second string.
    assert_allclose(np.log(kernel.block(["GACACAT"], ["ACACT"])) / 50.0, 2.0 * 5 - 2.0, atol=0.1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("slab", [1, 50, 2**18])
@pytest.mark.parametrize("kernel", [Subsequence(3), Substrings(), LocalAlignment()])
def test_slabs_of_pairs_change_nothing(monkeypatch, rng, kernel, slab):
    rows = ["".join(rng.choice(list("abcdefghijklmnopqr"), n)) for n in rng.integers(0, 12, 40)]
    K, diagonal = kernel.block(rows, rows[::1]), kernel.diag(rows)
    monkeypatch.setattr(compared, "PAIR_SLAB", slab)
    assert_allclose(kernel.block(rows, rows), K, rtol=1e-13)
    assert_allclose(kernel.block(rows[:9], rows[5:]), K[:9, 5:], rtol=1e-13)
    assert_allclose(kernel.diag(rows), diagonal, rtol=1e-13)


@pytest.mark.parametrize("kernel", [KmerSpectrum("loo"), Mismatch("loo", 0), Subsequence("loo")])
def test_lengths_to_choose_from_are_those_that_strings_have(kernel):
    name = "length" if isinstance(kernel, Subsequence) else "k"
    assert not kernel.resolved
    assert [getattr(k, name) for k in kernel.candidates(["", "abc", "ab"])] == [1, 2, 3]
    assert all(k.resolved for k in kernel.candidates(["abc"]))
    with pytest.raises(KernelError, match="is chosen from data"):
        (
            kernel
            if name == "length"
            else kernel.set_params(**({"alphabet": "a"} if isinstance(kernel, Mismatch) else {}))
        ).block(["a"], ["a"])
    with pytest.raises(KernelError, match='pass an integer or "loo"'):
        kernel.set_params(**{name: "best"}).candidates(["abc"])


def test_alphabet_is_that_of_the_rows():
    (kernel,) = Mismatch(2, 1).candidates(["banana", "bad"])
    assert kernel.alphabet == "abdn"
    with pytest.raises(KernelError, match="alphabet is None"):
        Mismatch(2, 1).block(["a"], ["a"])


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (KmerSpectrum(k=0), "k=0"),
        (KmerSpectrum(k=2, min_k=3), "min_k=3 is more than k=2"),
        (KmerSpectrum(decay=0.0), "decay"),
        (Mismatch(2, 2, "ab"), "mismatches=2 must be less than k=2"),
        (Mismatch(8, 4, "abcdefghijklmnop"), "neighbors"),
        (Subsequence(decay=1.5), "decay=1.5"),
        (Subsequence(length=0), "length=0"),
        (Substrings(decay=0.0), "decay=0.0"),
        (LocalAlignment(beta=0.0), "beta"),
        (LocalAlignment(beta=300.0), "beta=300.0 times match=2.0 is more than 500"),
        (LocalAlignment(match=-2.0), "mismatch=-1.0 is more than match=-2.0"),
    ],
)
def test_parameters_that_make_no_kernel_are_refused(kernel, words):
    with pytest.raises(KernelError, match=words):
        kernel.block(["ab"], ["ab"])


@pytest.mark.parametrize("kernel", [KmerSpectrum(), Substrings()])
def test_rows_that_are_not_strings_are_refused(kernel):
    with pytest.raises(KernelError, match="row 1 is a float"):
        kernel.block(["ab", 1.5], ["ab"])
    with pytest.raises(KernelError, match="pass a list"):
        kernel.block("ab", ["ab"])


@pytest.mark.slow
def test_one_long_string_does_not_pad_the_short_ones():
    long = "ab" * 10_000
    tracemalloc.start()
    K = Substrings(decay=0.5).block([long, *["abc"] * 2000], ["abc", "b"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    assert_allclose(K[1:], np.repeat(Substrings(decay=0.5).block(["abc"], ["abc", "b"]), 2000, axis=0))
    assert_allclose(K[0, 1], 10_000 * 0.25)


def test_costs_of_gaps_are_not_negative():
    with pytest.raises(KernelError, match="must not be negative"):
        LocalAlignment(gap=-1.0).block(["ab"], ["ab"])


@pytest.mark.slow
def test_normalized_local_alignments_of_long_strings_are_finite():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("acgt"), size)) for size in (200, 250, 20)]
    kernel = LocalAlignment(beta=2.0)
    assert np.isinf(kernel.diag(X)[1])
    K = Normalized(kernel).block(X, X)
    assert_allclose(np.diag(K), 1.0, rtol=1e-10)
    assert np.isfinite(K).all()
    assert (K[~np.eye(3, dtype=bool)] < 0.01).all()


@pytest.mark.parametrize("beta", [20.0, 60.0, 250.0])
def test_normalized_local_alignments_are_finite_for_large_beta(beta):
    X = ["acgt" * 10, "acgt" * 9 + "acg", "ttt"]
    K = Normalized(LocalAlignment(beta=beta)).block(X, X)
    # The second string lacks a match, and its scores are 80 and 78: exp(beta (78 - (80 + 78) / 2)).
    assert_allclose(np.diag(K), 1.0, rtol=1e-10)
    assert_allclose(K[0, 1], np.exp(-beta), rtol=1e-6)


def test_sums_of_logarithms_are_those_of_the_values():
    X = ["acgtacgtacgtacgtacgtacgtacgtacgt" * 2, "acgtacct" * 9, "ttacg", "g"]
    kernel = LocalAlignment(beta=1.0, gap=1.5, extension=0.3)
    S, T = (np.array([[ord(c) for c in s] + [end] * (72 - len(s)) for s in X]).T for end in (-1, -2))
    pairs = np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)
    logs = kernel._sums_of_logs(S[:, pairs[0]], T[:, pairs[1]])
    assert_allclose(logs.reshape(4, 4), np.log(kernel.block(X, X)), rtol=1e-12)


def test_better_alignments_far_behind_a_good_one_count():
    kernel = LocalAlignment(beta=60.0)
    good, better = "gt" * 10, "tg" * 20
    s, t = (good + c * 60 + better for c in "ac")
    # The best alignment is that of the last 40 characters; the first 20 alone are too large for floating point.
    assert_allclose(kernel._compared(kernel._log_values, [t], [s]) / 60.0, 80.0, atol=0.1)


@pytest.mark.parametrize("kernel", [KmerSpectrum(10**6), Subsequence(10**6), Subsequence(1000)], ids=str)
def test_lengths_beyond_all_strings_cost_nothing(kernel):
    X = ["a" * 200, "ab" * 50, ""]
    assert_array_equal(kernel.block(X, X), np.zeros((3, 3)))
    assert_array_equal(kernel.diag(X), np.zeros(3))
