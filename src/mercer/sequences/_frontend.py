"""From sound to frames: mel cepstra with energy, differences over time, standardization by speaker.

Short pieces of a signal, 25 ms every 10 ms, become rows: the logarithm of the energy, 12 cepstra of the energies
in mel bands, and their first and second differences, 39 numbers, as in Andelić (2007), chapter 4, and in HTK.
Functions on arrays, with the FFT of SciPy.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import dct, next_fast_len, rfft

from mercer import _validation
from mercer._types import Array
from mercer.sequences._frames import constant, split
from mercer.sequences._given import checked_sequences, read_groups

# Signals are not larger: the powers of their pieces are finite.
LOUDEST = 1e100
# Energies are at least this share of the largest one of a signal: 80 dB below it.
QUIETEST = 1e-8
PREEMPHASIS = 0.97


def windows(signal: ArrayLike, rate: float, *, width: float = 0.025, step: float = 0.010) -> Array:
    """Pieces (T, w) of a signal (n,), ``width`` seconds every ``step`` seconds; at least one, padded by zeros.

    The last piece ends within the signal: what does not fill another step is dropped.
    """
    x = _channel(signal)
    allowed = "a positive number"
    _validation.check_number("rate", rate, f"{allowed} of values per second", above=0.0)
    w, h = (
        max(round(_validation.check_number(name, value, f"{allowed} of seconds", above=0.0) * rate), 1)
        for name, value in (("width", width), ("step", step))
    )
    x = np.pad(x, (0, max(w - len(x), 0)))
    return np.array(np.lib.stride_tricks.sliding_window_view(x, w)[::h])


def _channel(signal: ArrayLike) -> Array:
    """One channel of finite numbers (n,)."""
    shape = np.shape(signal)
    if len(shape) != 1 or shape[0] == 0:
        raise ValueError(f"signal has shape {shape}; pass one channel, an array of one dimension, not empty")
    x = _validation.finite("signal", signal)
    largest = float(np.abs(x).max())
    if largest > LOUDEST:
        raise ValueError(
            f"signal has values up to {largest:.1e}; beyond {LOUDEST:.0e}, powers overflow; divide it"
            " by a constant"
        )
    return x


def mel_filters(n_bands: int, n_fft: int, rate: float) -> Array:
    """Triangular filters (n_bands, n_fft // 2 + 1) of equal width on the mel scale, from 0 to half of the rate.

    mel(f) = 2595 log10(1 + f / 700); the peak of each triangle is one, where its neighbors are zero.
    """
    top = 2595.0 * np.log10(1.0 + rate / 1400.0)
    edges = 700.0 * (10.0 ** (np.linspace(0.0, top, n_bands + 2) / 2595.0) - 1.0)
    f = np.arange(n_fft // 2 + 1) * rate / n_fft
    low, peak, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    filters: Array = np.maximum(np.minimum((f - low) / (peak - low), (high - f) / (high - peak)), 0.0)
    return filters


def mel_cepstra(
    signal: ArrayLike,
    rate: float,
    *,
    n_cepstra: int = 12,
    n_bands: int = 23,
    width: float = 0.025,
    step: float = 0.010,
) -> Array:
    """Log-energy and ``n_cepstra`` cepstra (T, 1 + n_cepstra) of a signal.

    The power of each piece, with pre-emphasis and a Hamming window, is summed in mel bands; cepstra are the
    cosine transform of the logarithms, without its constant. The energy is that of the piece itself.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.sequences import mel_cepstra
    >>> tone = np.sin(2 * np.pi * 440 * np.arange(8000) / 8000)
    >>> mel_cepstra(tone, 8000).shape
    (98, 13)
    """
    pieces = windows(signal, rate, width=width, step=step)
    power = mel_powers(signal, rate, n_bands=n_bands, width=width, step=step)
    if _validation.check_int("n_cepstra", n_cepstra, "a positive integer", least=1) >= n_bands:
        raise ValueError(f"n_cepstra={n_cepstra!r}; it must be below n_bands={n_bands}")
    cepstra = dct(_log(power), type=2, norm="ortho", axis=1)[:, 1 : n_cepstra + 1]
    return np.column_stack([_log((pieces**2).sum(axis=1)), cepstra])


def mel_powers(
    signal: ArrayLike, rate: float, *, n_bands: int = 23, width: float = 0.025, step: float = 0.010
) -> Array:
    """Power (T, n_bands) of a signal in mel bands: its mel spectrogram."""
    _validation.check_int("n_bands", n_bands, "an integer of at least 2", least=2)
    x = _channel(signal)
    pieces = windows(np.append(x[:1], x[1:] - PREEMPHASIS * x[:-1]), rate, width=width, step=step)
    n_fft = next_fast_len(pieces.shape[1], real=True)
    spectrum = rfft(pieces * np.hamming(pieces.shape[1]), n_fft, axis=1)
    powers: Array = np.abs(spectrum) ** 2 @ mel_filters(n_bands, n_fft, rate).T
    return powers


def differences(X: ArrayLike, *, reach: int = 2) -> Array:
    """Slopes (T, d) of the regression lines through 2 reach + 1 neighbors of each frame; ends are repeated."""
    frames = _validation.finite("X", X)
    if frames.ndim != 2:
        raise ValueError(f"X has shape {frames.shape}; pass frames as (T, d)")
    _validation.check_int("reach", reach, "a positive integer", least=1)
    padded = np.pad(frames, ((reach, reach), (0, 0)), mode="edge")
    T, steps = len(frames), range(1, reach + 1)
    slopes: Array = sum(
        (t * (padded[reach + t : reach + t + T] - padded[reach - t : reach - t + T]) for t in steps),
        np.zeros_like(frames),
    ) / (2.0 * sum(t * t for t in steps))
    return slopes


def speech_frames(signal: ArrayLike, rate: float, **choices: Any) -> Array:
    """Energy and cepstra with their first and second differences (T, 39); choices are those of ``mel_cepstra``."""
    X = mel_cepstra(signal, rate, **choices)
    slopes = differences(X)
    return np.column_stack([X, slopes, differences(slopes)])


def standardize(sequences: Sequence[ArrayLike], groups: ArrayLike | None = None) -> list[Array]:
    """Sequences (T_i, d) with mean zero and variance one of every column, in each group of sequences.

    ``groups`` names the speaker of each sequence, or the room; None: every sequence is one. Labels are not used,
    so that sequences of a new speaker are standardized by themselves. Columns that are constant, up to rounding,
    become zero.
    """
    frames = checked_sequences(sequences, most=np.inf)
    group = read_groups(groups, len(frames))
    order = np.argsort(group, kind="stable")
    found = list(frames)
    for own in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        parts = [frames[i] for i in own]
        for i, Z in zip(own, split(_standardized(np.concatenate(parts)), parts)):
            found[i] = Z
    return found


def _standardized(X: Array) -> Array:
    """Columns of rows (n, d) with mean zero and variance one in float64, or zero if all they have is rounding."""
    # Powers of two divide without rounding: the largest value is between 1/2 and 1, and squares are in range.
    Z: Array = np.ldexp(X.astype(np.float64), -np.frexp(np.abs(X).max(axis=0))[1])
    same = constant(Z.min(axis=0), Z.max(axis=0), X.dtype)
    # Twice: the first mean is rounded, which counts if columns vary little compared with it.
    for _ in range(2):
        Z -= Z.mean(axis=0)
    Z /= np.where(same, np.inf, np.sqrt((Z**2).mean(axis=0)))
    return Z


def _log(energy: Array) -> Array:
    return np.log(np.maximum(energy, max(QUIETEST * float(energy.max()), np.finfo(np.float64).tiny)))
