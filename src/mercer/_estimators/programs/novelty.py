"""Novelty detection by the smallest soft ball around the rows, or a plane."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer import _validation
from mercer._estimators.base import KernelModel, schema_of
from mercer._estimators.fitted import Fitted, atomic_update, fitted, reads_one_state, unfitted
from mercer._estimators.parameters import memory_or_none, row_weight, share
from mercer._expansion import Expansion
from mercer._fitting.programs.novelty import NOVELTY_FORMS, Distances, fit_novelty
from mercer._gram import Budget
from mercer._types import Array, Indices
from mercer.kernels import Kernel
from mercer.kernels._resolve import without_targets
from mercer.rows._table import n_rows


class KernelNoveltyDetector(OutlierMixin, KernelModel):
    r"""Tells rows that are unlike the training rows: outside of the smallest soft ball around them.

    ``KernelNoveltyDetector()`` needs no parameters; the width is a parameter of the kernel, as in
    ``KernelNoveltyDetector(RBF(gamma=0.1))``.

    The ball has the center w = sum_i a_i phi(x_i) and the radius r that minimize r² + 1 / (nu n) sum_i xi_i, where
    the squared distance of row i is at most r² + xi_i (Tax and Duin 1999); the plane <w, phi(x)> = rho is as far
    from the origin as the share ``nu`` of rows on the wrong side allows (Schölkopf et al. 2001). Both are the same
    where k(x, x) is constant. The threshold is not that of the program, beyond which more than the share nu of new
    rows lie: it is found by training rows that are held out in ten folds, so that of new rows like these the share
    ``rate`` is called novel.

    Costs O(n²) memory, and O(n) for each of some thousand moves of weight.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        "rbf" is ``RBF(gamma="median")``: there are no targets by which leave-one-out could choose.
    form : {"ball", "plane"}, default="ball"
        What is fitted.
    rate : float, default=0.05
        The share of new rows, like the training rows, that are called novel.
    nu : float or None, default=None
        The largest share of training rows outside; None: ``rate``.
    max_memory : float, default=None
        GiB that may be allocated; None: four fifths of the free memory.

    Attributes
    ----------
    X_fit_, dual_coef_ : rows, ndarray of shape (m,)
        Training rows with weight, and their weights a_i.
    support_ : ndarray of shape (m,)
        Which rows these are.
    offset_ : float
        The threshold of ``score_samples``.
    radius_ : float or None
        r of the program; None for the plane.
    loo_score_samples_ : ndarray of shape (n,)
        Scores of training rows, each without its fold.
    kernel_, gamma_ : Kernel, float or None
        The kernel with its parameters.
    gap_ : float
        How much better other weights could be at most, recomputed.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelNoveltyDetector
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = KernelNoveltyDetector(rate=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    """

    gap_ = fitted[float]()
    support_ = fitted[Indices]()
    radius_ = fitted[float | None]()
    offset_ = fitted[float]()
    loo_score_samples_ = fitted[Array]()

    def __init__(
        self,
        kernel: str | Kernel | Any = "rbf",
        *,
        form: str = "ball",
        rate: float = 0.05,
        nu: float | None = None,
        max_memory: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.form = form
        self.rate = rate
        self.nu = nu
        self.max_memory = max_memory

    @atomic_update
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the ball or the plane, and the threshold.

        Parameters
        ----------
        X : array, data frame, CSR matrix, list of objects or kernel matrix, n rows
        y : ignored
        sample_weight : array of shape (n,), default=None
            Weights of the rows; a weight of two is equivalent to repeating the row.
        """
        _validation.check_choice("form", self.form, NOVELTY_FORMS)
        rate = share("rate", self.rate)
        nu = rate if self.nu is None else share("nu", self.nu)
        budget = Budget.from_parameter(memory_or_none("max_memory", self.max_memory))
        model = unfitted(self)
        X = model._read(X, reset=True)
        weight = row_weight(sample_weight, n_rows(X))
        kernel = without_targets(self.kernel, X, weight)
        found = fit_novelty(kernel, X, weight, form=self.form, nu=nu, rate=rate, budget=budget)
        attributes = {
            "kernel_": kernel,
            "gamma_": kernel.gamma,
            "gap_": found.gap,
            "support_": found.support,
            "dual_coef_": found.coef,
            "X_fit_": kernel.centers(X, found.support),
            "intercept_": np.zeros(1),
            "radius_": found.radius,
            "offset_": found.offset,
            "loo_score_samples_": found.held_out,
        }
        return self._publish(Fitted(schema_of(model).attributes | attributes, found.distances))

    @reads_one_state
    def score_samples(self, X: Any) -> Array:
        """Minus the squared distance (n,) to the center of the ball, or <w, phi(x)>; larger is more usual."""
        check_is_fitted(self)
        known: Distances = self._details
        f = Expansion(self.kernel_, self.X_fit_, self.dual_coef_[:, None], self.intercept_)

        def scores(rows: Any) -> Array:
            return known.of_rows(self.kernel_, rows, np.asarray(f(rows), dtype=np.float64)[:, 0])

        return np.asarray(self._evaluated(X, scores), dtype=np.float64)

    @reads_one_state
    def decision_function(self, X: Any) -> Array:
        """``score_samples`` minus the threshold (n,): negative for novel rows."""
        return self.score_samples(X) - self.offset_

    @reads_one_state
    def predict(self, X: Any) -> NDArray[np.intp]:
        """-1 for novel rows, +1 for others (n,)."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)
