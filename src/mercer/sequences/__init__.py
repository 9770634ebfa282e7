"""Sequences of frames: hidden Markov models with discriminants as emissions, connected words, sound."""

from mercer.sequences._accuracy import WordErrors, word_errors
from mercer.sequences._frontend import differences, mel_cepstra, mel_powers, speech_frames, standardize
from mercer.sequences._paths.decoding import bigrams
from mercer.sequences._reading import read_sequences
from mercer.sequences._recognizer import HiddenMarkovClassifier

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
