"""Frames of sound, beside librosa and known signals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.fft import dct

from mercer.sequences import differences, mel_cepstra, mel_powers, speech_frames, standardize
from mercer.sequences._frontend import PREEMPHASIS, mel_filters, windows

RATE = 8000


@pytest.fixture
def sound(rng):
    t = np.arange(4000) / RATE
    return np.sin(2 * np.pi * (200 + 600 * t) * t) + 0.1 * rng.normal(size=4000)


@pytest.mark.slow
def test_filters_are_those_of_librosa():
    librosa = pytest.importorskip("librosa")
    expected = librosa.filters.mel(sr=RATE, n_fft=200, n_mels=23, htk=True, norm=None)
    assert_allclose(mel_filters(23, 200, RATE), expected, atol=1e-6)


@pytest.mark.slow
def test_spectra_and_cepstra_are_those_of_librosa(sound):
    librosa = pytest.importorskip("librosa")
    louder = np.append(sound[0], sound[1:] - PREEMPHASIS * sound[:-1])
    expected = librosa.feature.melspectrogram(
        y=louder,
        sr=RATE,
        n_fft=200,
        hop_length=80,
        window=np.hamming(200),
        center=False,
        n_mels=23,
        htk=True,
        norm=None,
    ).T
    assert_allclose(mel_powers(sound, RATE), expected, rtol=1e-5)
    cepstra = librosa.feature.mfcc(S=np.log(expected).T, n_mfcc=13, dct_type=2, norm="ortho").T
    assert_allclose(mel_cepstra(sound, RATE)[:, 1:], cepstra[:, 1:], atol=1e-4)


@pytest.mark.slow
def test_differences_are_those_of_librosa_away_from_the_ends(rng):
    librosa = pytest.importorskip("librosa")
    X = rng.normal(size=(30, 4))
    assert_allclose(differences(X)[2:-2], librosa.feature.delta(X, width=5, axis=0)[2:-2], atol=1e-12)


def test_differences_of_a_line_are_its_slope():
    X = np.column_stack([3.0 * np.arange(10), np.ones(10)])
    assert_allclose(differences(X)[2:-2], [[3.0, 0.0]] * 6)


def test_frames_are_as_many_as_steps_fit():
    assert windows(np.arange(400.0), RATE).shape == (3, 200)
    assert_allclose(windows(np.arange(400.0), RATE)[:, 0], [0, 80, 160])
    assert windows(np.ones(10), RATE).sum() == 10


def test_louder_sound_changes_the_energy_alone(sound):
    quiet, loud = mel_cepstra(sound, RATE), mel_cepstra(10 * sound, RATE)
    assert_allclose(loud[:, 0] - quiet[:, 0], np.log(100.0))
    assert_allclose(loud[:, 1:], quiet[:, 1:], atol=1e-9)
    assert speech_frames(sound, RATE).shape == (48, 39)


def test_silence_has_finite_frames():
    assert np.isfinite(speech_frames(np.zeros(1000), RATE)).all()
    assert_allclose(mel_cepstra(np.zeros(1000), RATE)[:, 1:], 0.0, atol=1e-9)


def test_groups_are_standardized_by_themselves(rng):
    X = [5.0 * g + (1 + g) * rng.normal(size=(20, 3)) for g in (0, 0, 1)]
    Z = standardize(X, ["a", "a", "b"])
    for part in (np.concatenate(Z[:2]), Z[2]):
        assert_allclose(part.mean(axis=0), 0.0, atol=1e-12)
        assert_allclose(part.std(axis=0), 1.0)
    assert_allclose(standardize([np.ones((4, 2))])[0], 0.0)


@pytest.mark.parametrize(
    ("place", "spread"), [(0.0, 1e160), (0.0, 1e-200), (0.0, 1e307), (0.0, 1e-300), (1e13, 1.0), (-1e13, 1.0)]
)
def test_columns_that_vary_are_standardized_whatever_their_size(rng, place, spread):
    Z = rng.normal(size=(1000, 2))
    (found,) = standardize([place + spread * Z])
    assert_allclose(found.mean(axis=0), 0.0, atol=1e-12)
    assert_allclose(found.std(axis=0), 1.0)
    # Beside 1e13, values are rounded to 1/512.
    assert_allclose(found, (Z - Z.mean(axis=0)) / Z.std(axis=0), rtol=1e-9, atol=0.002 if place else 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_that_are_constant_up_to_rounding_become_zero(dtype):
    value = dtype(0.1)
    rounded = np.where(np.arange(99) % 2, value, np.nextafter(value, dtype(1)))
    (found,) = standardize([np.column_stack([np.full(99, value), rounded, np.zeros(99, dtype)])])
    assert_array_equal(found, 0.0)
    assert found.dtype == np.float64


def test_groups_may_come_in_any_order(rng):
    X = [rng.normal(size=(n, 2)) for n in (3, 5, 4, 6)]
    mixed, sorted_ = standardize(X, [1, 0, 1, 0]), standardize([X[i] for i in (1, 3, 0, 2)], [0, 0, 1, 1])
    for i, j in enumerate((2, 0, 3, 1)):
        assert_array_equal(mixed[i], sorted_[j])


def test_what_cannot_be_standardized_is_refused():
    X = [np.ones((4, 2)), np.zeros((3, 2))]
    with pytest.raises(ValueError, match=r"one ndarray of frames; pass a list of sequences.*\[X\]"):
        standardize(X[0])
    with pytest.raises(ValueError, match=r"type int .* and str"):
        standardize(X, [1, "1"])
    with pytest.raises(ValueError, match="groups contains NaN"):
        standardize(X, [np.nan, np.nan])
    with pytest.raises(ValueError, match="groups has 1 masked"):
        standardize(X, np.ma.array([0, 0], mask=[False, True]))


@pytest.mark.parametrize("function", [mel_cepstra, mel_powers, speech_frames])
def test_signals_that_have_no_power_in_float64_are_refused(function, sound):
    with pytest.raises(ValueError, match=r"signal has values up to .*e\+200; .*divide it by a constant"):
        function(1e200 * sound, RATE)
    for wrong, what in ((np.nan, "NaN"), (np.inf, "infinity")):
        with pytest.raises(ValueError, match=f"Input signal contains {what}"):
            function(np.append(sound, wrong), RATE)
    with pytest.raises(ValueError, match=r"signal has shape \(0,\); pass one channel"):
        function([], RATE)
    assert np.isfinite(function(1e99 * sound, RATE)).all()


def test_what_is_no_sound_is_refused():
    with pytest.raises(ValueError, match=r"shape \(10, 2\); pass one channel"):
        windows(np.ones((10, 2)), RATE)
    with pytest.raises(ValueError, match="contains NaN"):
        mel_cepstra(np.full(100, np.nan), RATE)
    with pytest.raises(ValueError, match="n_cepstra=23"):
        mel_cepstra(np.ones(500), RATE, n_cepstra=23)
    with pytest.raises(ValueError, match="3 sequences, and in groups 2 entries"):
        standardize([np.ones((2, 1))] * 3, [0, 1])


def test_cepstra_are_the_cosine_transform_of_log_powers(sound):
    expected = dct(np.log(mel_powers(sound, RATE)), type=2, norm="ortho", axis=1)[:, 1:13]
    assert_allclose(mel_cepstra(sound, RATE)[:, 1:], expected)


def test_two_channels_are_refused():
    for function in (mel_powers, mel_cepstra):
        with pytest.raises(ValueError, match="pass one channel"):
            function(np.zeros((2000, 2)), 8000)
