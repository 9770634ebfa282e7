"""Sequences of frames: hidden Markov models with discriminants as emissions, connected words, sound."""

from mercer.sequences.accuracy import WordErrors, word_errors
from mercer.sequences.decoding import bigrams
from mercer.sequences.frontend import differences, mel_cepstra, mel_powers, speech_frames, standardize
from mercer.sequences.reading import read_sequences
from mercer.sequences.recognizer import HiddenMarkovClassifier

__all__ = [
    "HiddenMarkovClassifier",
    "WordErrors",
    "bigrams",
    "differences",
    "mel_cepstra",
    "mel_powers",
    "read_sequences",
    "speech_frames",
    "standardize",
    "word_errors",
]
