"""What a recognizer answers: words of sequences, their probabilities, paths, and words of connected speech."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer import _validation
from mercer._estimators.base import schema_of
from mercer._estimators.fitted import fitted, reads_one_state
from mercer._fitting.data import check_names
from mercer._types import Array, Indices
from mercer.sequences._alignment import WordModels
from mercer.sequences._given import checked_sequences, frame_names, one_sequence
from mercer.sequences._paths.decoding import Grammar, follow, network, words_along
from mercer.sequences._paths.hmm import best_path


class WordPredictions(ClassifierMixin):
    """Answers of hidden Markov models of words; abstract."""

    n_features_in_: int

    classes_ = fitted[NDArray[Any]]()
    priors_ = fitted[Array]()
    states_ = fitted[Indices]()
    models_ = fitted[WordModels]()
    slope_ = fitted[float]()
    held_out_losses_ = fitted[Any]()

    @reads_one_state
    def decision_function(self, X: Sequence[ArrayLike]) -> Array:
        """slope log p(X | word) + log P(word) (n, n_classes), up to a constant of each sequence; two words too."""
        check_is_fitted(self)
        sequences = checked_sequences(X, width=self.n_features_in_)
        check_names(schema_of(self).names, frame_names(X))
        return self.models_.log_posteriors(sequences, self.slope_, self.priors_)

    @reads_one_state
    def predict(self, X: Sequence[ArrayLike]) -> NDArray[Any]:
        """The likeliest word of each sequence (n,)."""
        best = self.decision_function(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    @reads_one_state
    def predict_proba(self, X: Sequence[ArrayLike]) -> Array:
        """Probabilities (n, n_classes) of the words, with the slope of held-out sequences."""
        return np.exp(self.predict_log_proba(X))

    @reads_one_state
    def predict_log_proba(self, X: Sequence[ArrayLike]) -> Array:
        """Their logarithms (n, n_classes)."""
        return np.asarray(log_softmax(self.decision_function(X), axis=1))

    @reads_one_state
    def align(self, X: ArrayLike, word: Any) -> Indices:
        """The most likely path (T,) of one sequence (T, d) through the states 0, 1, … of a word."""
        check_is_fitted(self)
        w = number_of(word, self.classes_)
        (path,) = self.models_.align(self._one(X), np.array([w]))
        return np.asarray(path - self.models_.states.first(w))

    @reads_one_state
    def emissions(self, X: ArrayLike) -> Array:
        """Logarithms (T, states) of the emissions of all states of all words, for one sequence (T, d)."""
        check_is_fitted(self)
        (logs,) = self.models_.emissions(self._one(X))
        return np.asarray(logs)

    @reads_one_state
    def decode(
        self,
        X: ArrayLike,
        grammar: Grammar | None = None,
        *,
        insertion_penalty: float = 0.0,
        silence: Any = None,
    ) -> list[Any]:
        """The words of one sequence (T, d) along the most likely path through all words: O(T k²), k states in all.

        Parameters
        ----------
        X : array of shape (T, d)
        grammar : dict or None, default=None
            What may follow each word: a list of words (a word-pair grammar), or a dict of their probabilities
            (:func:`bigrams`). The key None is the beginning, and None among the words that follow is the end;
            without them any word may be the first, or the last. None: a loop of all words, equally likely.
        insertion_penalty : float, default=0.0
            Subtracted from the log-likelihood of a path for each word on it.
        silence : label, default=None
            A word, such as that of pauses, that is dropped from the answer.

        Notes
        -----
        A word that follows itself is found as two if its last state is not its first: not for words of one state,
        nor for the topology "ergodic".
        """
        found = self.segment(X, grammar, insertion_penalty=insertion_penalty, silence=silence)
        return [word for word, _ in found]

    @reads_one_state
    def segment(
        self,
        X: ArrayLike,
        grammar: Grammar | None = None,
        *,
        insertion_penalty: float = 0.0,
        silence: Any = None,
    ) -> list[tuple[Any, int]]:
        """The words that :meth:`decode` finds in one sequence (T, d), each with the frame at which it begins."""
        check_is_fitted(self)
        if silence is not None:
            number_of(silence, self.classes_, "silence")
        penalty = _validation.check_number(
            "insertion_penalty", insertion_penalty, "a number between -500 and 500", least=-500.0, below=500.0
        )
        labels = labels_of(self.classes_)
        chain = network(self.models_.chains, follow(grammar, labels), penalty)
        value, path = best_path(chain, self.emissions(X))
        if not np.isfinite(value):
            raise ValueError(f"no sentence fits into {len(path)} frames; pass more frames, or another grammar")
        states, forward = self.models_.states, self.models_.states.topology == "left_right"
        found = [(labels[w], t) for w, t in words_along(path, states.sizes, forward=forward)]
        return [(word, t) for word, t in found if word != silence]

    def _one(self, X: Any) -> list[Array]:
        found = one_sequence(X, width=self.n_features_in_)
        check_names(schema_of(self).names, frame_names([X]))
        return found


def labels_of(classes: NDArray[Any]) -> list[Any]:
    """The words; dates of numpy would become numbers in a list of Python's objects."""
    return list(classes) if classes.dtype.kind == "M" else classes.tolist()


def number_of(word: Any, classes: NDArray[Any], name: str = "word") -> int:
    """The position of a word among the classes."""
    known = classes == word if np.ndim(word) == 0 else np.zeros(1, dtype=bool)
    if not known.any():
        raise ValueError(f"{name}: there is no word {word!r} among the classes {labels_of(classes)}")
    return int(known.argmax())
