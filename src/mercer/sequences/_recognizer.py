"""A classifier of sequences: hidden Markov models whose emissions are discriminants."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone

from mercer import _validation
from mercer._estimators import KernelFisherClassifier
from mercer._estimators.estimator import MercerEstimator
from mercer._estimators.fitted import Fitted, atomic_update
from mercer._estimators.parameters import asks_for_relevance, class_labels, count, generator, with_default
from mercer._fitting.data import RowSchema
from mercer.sequences._alignment import States, mixture_models
from mercer.sequences._given import checked_sequences, frame_names, read_groups
from mercer.sequences._paths.chains import TOPOLOGIES
from mercer.sequences._predictions import WordPredictions, number_of
from mercer.sequences._training import LabeledSequences, TrainedModels, calibrated, discriminant_fit, drawn, train

# Centers of the discriminant of all states, and states of words, if none are given.
CENTERS_OF_STATES, STATES = 300, 5


class HiddenMarkovClassifier(MetaEstimatorMixin, WordPredictions, MercerEstimator):
    r"""Hidden Markov models of words whose emissions come from one discriminant of all their states.

    Each class ("word") is a chain of states. A first alignment says which state each frame belongs to: Gaussian
    mixtures, one hidden Markov model for each word (Baum-Welch). Then one classifier is trained to tell the states
    of all words apart, and its probabilities, divided by the shares P(i) of the states, are the emissions,

        P(i | x) / P(i) = p(x | i) / p(x),

    of which p(x) is the same for all paths (a hybrid recognizer). Sequences are aligned again by these models and
    the classifier trained again, while words that it has not seen are told apart better. A sequence is assigned to
    the word with the largest p(X | word)^s P(word), where p is a sum over all paths and s the slope below.

    Needs hmmlearn (``pip install mercer[sequences]``), which finds paths and sums over them: O(T k²) for T frames
    and k states of a word. Standardize the frames, as for every kernel.

    Parameters
    ----------
    estimator : classifier with predict_proba, "mixtures" or None, default=None
        The classifier of states; None is ``KernelFisherClassifier(centers=300)``, one fit for all states. A
        :class:`mercer.KernelFisherClassifier` chooses its kernel in the first round only, and gets a seed if it
        has none. The thesis has one for each pair of states: ``PairwiseClassifier(SparseFisherClassifier())``.
        "mixtures": none; the Gaussian mixtures of the first alignment are the model.
    n_states : int or dict, default=5
        States of each word, or a dict of those of some words, such as ``{"pause": 1}``; others have 5. A word
        whose longest sequence is shorter has as many as that has frames.
    topology : {"left_right", "ergodic"}, default="left_right"
        Paths go from the first state to the last and skip none, or from any state to any other.
    n_mixtures : int, default=2
        Components of the Gaussian mixture of each state.
    n_iter : int, default=5
        Iterations of Baum-Welch.
    context : int, default=0
        Number of frames on each side that the classifier sees besides a frame; not used by mixtures.
    n_rounds : int, default=2
        How many times, at most, sequences are aligned again and the classifier trained again.
    held_out : float, default=0.2
        Share of the sequences on which rounds are compared and probabilities calibrated: the classifier is fitted
        without them, and once more, at the end, with them. At least one group is held out, if one can be. 0, or
        if none can: all rounds are made, and probabilities are not calibrated.
    random_state : int, RandomState or None, default=None
        For first means of mixtures, held-out sequences, the order of frames, and the default estimator.
        None is seed 0: equal rows give equal models, to the bit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    priors_ : ndarray of shape (n_classes,)
        Shares P(word) of the words.
    states_ : ndarray of shape (n_classes,)
        Number of states of each word.
    models_ : WordModels
        Chains and emissions. ``models_.emissions.classifier`` is the fitted classifier of states, which are
        numbered word by word.
    slope_ : float
        Factor of log-likelihoods: neighboring frames are strongly correlated, and count as independent. Factors
        up to one vote, each with the likelihood of the words of held-out sequences; it is the one whose
        probabilities are nearest to the mean.
    held_out_losses_ : tuple of float
        Log-loss of held-out sequences, round by round, up to the first that raises it.

    Notes
    -----
    A sequence with fewer frames than a word has states cannot visit all of them: each of its frames is in a later
    state than the one before, and it may start and end anywhere.

    Frames of one sequence, or of one group of sequences, are held out together, also within the estimator if its
    ``fit`` takes ``groups``: it gets at most 20 of them, in which sequences or groups are joined.

    More than 100,000 frames are read block by block, if the estimator is a :class:`mercer.KernelFisherClassifier`
    without ``cv`` and ``centers="all"``; others get all at once, with their neighbors. Mixtures are learned from
    sequences of each word with about 50,000 frames, drawn at random.

    An estimator with ``partial_fit`` whose ``fit`` takes no groups, such as
    :class:`mercer.OnlineFisherClassifier`, may learn row by row: it gets the frames in a random order, all others
    sequence by sequence.

    References
    ----------
    E. Andelić (2007), Sparse Nonlinear Discriminants, Otto von Guericke University Magdeburg, chapter 4.
    H. Bourlard and N. Morgan (1994), Connectionist Speech Recognition: A Hybrid Approach, Kluwer.

    Examples
    --------
    >>> from mercer.datasets import make_words
    >>> from mercer.sequences import HiddenMarkovClassifier
    >>> X, y = make_words(60, random_state=0)
    >>> model = HiddenMarkovClassifier(n_states=3, random_state=0).fit(X[:40], y[:40])
    >>> model.score(X[40:], y[40:]) > 0.8
    True
    >>> model.align(X[40], y[40])[:3]
    array([0, 0, 0])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_states: int | Mapping[Any, int] = STATES,
        topology: str = "left_right",
        n_mixtures: int = 2,
        n_iter: int = 5,
        context: int = 0,
        n_rounds: int = 2,
        held_out: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_states = n_states
        self.topology = topology
        self.n_mixtures = n_mixtures
        self.n_iter = n_iter
        self.context = context
        self.n_rounds = n_rounds
        self.held_out = held_out
        self.random_state = random_state

    @atomic_update
    def fit(self, X: Sequence[ArrayLike], y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Align, and train the classifier of states.

        Parameters
        ----------
        X : list of n arrays of shape (T_i, d)
            Sequences of frames, in float32 if all are, otherwise in float64. They may be parts of a memory map.
        y : array of shape (n,)
            The word of each sequence.
        groups : array of shape (n,), default=None
            Sequences that are held out together, such as those of one speaker; None: each by itself.
        """
        self._check_parameters()
        sequences = checked_sequences(X)
        labels = class_labels(y)
        if len(labels) != len(sequences):
            raise ValueError(f"X has {len(sequences)} sequences and y {len(labels)} labels; pass one for each")
        classes, word = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y contains one class, {classes.tolist()[0]!r}; a classifier needs at least 2")
        data = LabeledSequences(sequences, word.astype(np.intp), read_groups(groups, len(sequences)))
        training = self._train(data, classes, generator(self.random_state))
        schema = RowSchema(sequences[0].shape[1]).named(frame_names(X))
        found = {
            "classes_": classes,
            "priors_": data.priors,
            "models_": training.models,
            "slope_": training.slope,
            "held_out_losses_": training.losses,
            "states_": np.array(training.models.states.sizes),
        }
        return self._publish(Fitted(schema.attributes | found))

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of ``estimator`` may be set if it is None: they are those of the default."""
        params = with_default(params, self.estimator, _default)
        super().set_params(**params)
        return self

    def _train(self, data: LabeledSequences, classes: NDArray[Any], rng: np.random.Generator) -> TrainedModels:
        states = States.of(data.sequences, data.word, self._most_states(classes), self.topology)
        held = drawn(data.word, data.group, self.held_out, rng)
        seed = int(rng.integers(2**31))

        def mixtures(part: LabeledSequences) -> Any:
            own, M = np.random.default_rng(seed), self.n_mixtures
            return mixture_models(part.sequences, part.word, states, n_mixtures=M, n_iter=self.n_iter, rng=own)

        if isinstance(self.estimator, str):
            return calibrated(data, mixtures, held_out=held)

        def new(before: Any) -> Any:
            model = _default() if self.estimator is None else clone(self.estimator)
            if isinstance(model, KernelFisherClassifier):
                _complete(model, seed, before)
            return model

        fit = discriminant_fit(new, states, self.context, seed)
        return train(data, mixtures, fit, n_rounds=self.n_rounds, held_out=held)

    def _check_parameters(self) -> None:
        for name in ("n_mixtures", "n_iter"):
            count(name, getattr(self, name))
        for name in ("context", "n_rounds"):
            _validation.check_int(name, getattr(self, name), "an integer of at least 0", least=0)
        _validation.check_choice("topology", self.topology, TOPOLOGIES)
        _validation.check_number(
            "held_out", self.held_out, "a share of at least 0 and below 1", least=0.0, below=1.0
        )
        if isinstance(self.estimator, str):
            _validation.check_choice("estimator", self.estimator, ("mixtures",))
        elif self.estimator is not None and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(f"{self.estimator!r} has no predict_proba; emissions are made from probabilities")

    def _most_states(self, classes: NDArray[Any]) -> list[int]:
        """The number of states of each word, if its sequences are long enough."""
        if not isinstance(self.n_states, Mapping):
            n = _validation.check_int(
                "n_states", self.n_states, "a positive integer, or a dict of them by word", least=1
            )
            return [n] * len(classes)
        most = [STATES] * len(classes)
        for word, n in self.n_states.items():
            most[number_of(word, classes, "n_states")] = count(f"n_states of {word!r}", n)
        return most


def _default() -> KernelFisherClassifier:
    return KernelFisherClassifier(centers=CENTERS_OF_STATES)


def _complete(model: KernelFisherClassifier, seed: int, before: Any) -> None:
    """Give a classifier of states a seed, if it has none, and the kernel that an earlier one has chosen.

    Alignments change little from round to round: the kernel is chosen once, unless relevances are asked for.
    """
    if model.random_state is None:
        model.random_state = seed
    if before is not None and not asks_for_relevance(model.relevance):
        model.kernel = before.kernel_
