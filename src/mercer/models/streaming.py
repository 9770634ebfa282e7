"""Fits in passes over blocks of rows, that can be continued: what the large models share."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.centers import Given
from mercer.gram.moments import Moments
from mercer.kernels import as_kernel
from mercer.linalg import blas_threads
from mercer.linalg.threads import at_most
from mercer.models.base import KernelModel, Training
from mercer.models.passes import Columns, Encoder, Gatherer, Kept, Stream
from mercer.models.report import FitReport, fit_report
from mercer.models.state import PENDING, Awaited, Pending, aside, from_one_state
from mercer.models.validation import (
    as_plan,
    check_folds,
    generator,
    loo_size,
    penalty_of,
    positive_or_loo,
    refuse_changes,
    settings,
    share,
    wanted_centers,
    warn_of_lost_digits,
    warn_of_scales,
    weight_reading,
)
from mercer.rows import Block, Draw, Drawn, MemoryRows, Rows, as_rows, elsewhere, feature_names, survey
from mercer.rows.base import LocalRows
from mercer.rows.draw import OF_EACH
from mercer.rows.repeated import RepeatedRows
from mercer.rows.table import n_rows
from mercer.rows.twins import weight_of
from mercer.scores.criteria import CriterionFor
from mercer.solvers import Observations
from mercer.tuning import ALPHAS, Task, Tuned, choose, enough, finish, precision_of
from mercer.tuning.memory import SEVERAL, Load, blocks_of, row_bytes, rows_left_out, sizes_within, threads_within
from mercer.types import Array, Indices

# More rows than this are not all made centers unless asked for: a decomposition of so many takes half a minute.
EXACT_ROWS = 5000
EVERY_ROW = 2**62
# What more rows do not change, and what must not change between them.
CHOSEN = {"kernel_", "X_fit_", "support_", "classes_", "n_features_in_", "feature_names_in_"}
FIXED = ("kernel", "centers", "penalty", "class_weight")


class StreamModel(KernelModel):
    """A model that can be fitted with m centers, in blocks of rows from anywhere, and go on; abstract."""

    centers: Any
    loo_rows: int | None
    verbose: int

    @abstractmethod
    def _encoder(self, drawn: Drawn, columns: Columns | None) -> Encoder:
        """Targets of blocks, once the rows were looked at."""

    @abstractmethod
    def _labels_of(self, encode: Encoder, block: Block) -> Indices | None:
        """Class numbers (n,) of rows, None where there are no classes."""

    @abstractmethod
    def _criterion(self, training: Training, label: Indices | None) -> CriterionFor:
        """What leave-one-out minimizes."""

    @abstractmethod
    def _conclude(self, training: Training, tuned: Tuned, moments: Moments) -> None:
        """Set what this model makes of a fit; rows of ``training`` are those left out."""

    @property
    @abstractmethod
    def _has_intercept(self) -> bool: ...

    @property
    @abstractmethod
    def _has_classes(self) -> bool: ...

    @abstractmethod
    def _table(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, NDArray[Any], Array]:
        """Rows in memory with targets and weights, checked."""

    alpha_: Any = Awaited()
    gamma_: Any = Awaited()
    dual_coef_: Any = Awaited()
    intercept_: Any = Awaited()
    degrees_of_freedom_: Any = Awaited()
    loo_index_: Any = Awaited()
    loo_path_: Any = Awaited()
    loo_score_: Any = Awaited()
    report_: Any = Awaited()

    @property
    def moments_(self) -> Moments:
        """Sums over all rows from which the model follows, where it was fitted with centers."""
        return self._moments.of_kernel_values()

    @property
    def _moments(self) -> Moments:
        """The sums, in the coordinates in which they were taken."""
        stream = vars(self).get("_stream")
        if stream is None:
            raise AttributeError(
                f"{type(self).__name__} has no moments_: it was not fitted with centers, or is lean"
            )
        moments: Moments = stream.moments
        return moments

    @from_one_state
    def lean(self) -> Self:
        """A copy that predicts and nothing else: without the moments and rows from which the fit could go on."""
        check_is_fitted(self)
        model: Self = aside(self)
        for name in ("_stream", "_kept"):
            model.__dict__.pop(name, None)
        model._lean = True
        return model

    def __getstate__(self) -> dict[str, Any]:
        """What goes into a file: the solution, where there is one, and no lock."""
        state: dict[str, Any] = dict(super().__getstate__())
        pending = state.pop(PENDING, None)
        return state if pending is None or pending.solved is None else state | pending.solved

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_stream" in vars(self) and "dual_coef_" not in vars(self):
            self._pending = Pending()

    def _start_anew(self) -> None:
        """Nothing of an earlier fit is left."""
        fitted = [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]
        for name in (*fitted, "_stream", "_kept", PENDING, "_lean", "_told_classes", "_begun_with"):
            self.__dict__.pop(name, None)

    def _keep(self, observations: Observations, y: NDArray[Any], sample_weight: Any, weight: Array) -> None:
        """Hold on to the rows of a fit that made each a center, from which ``partial_fit`` goes on."""
        if self.kernel_.takes != "values":
            used = weight > 0
            self._kept = Kept(observations.rows.point, y[used], None if sample_weight is None else weight[used])

    def _in_passes(self, X: Any, *, together: bool) -> bool:
        """Whether the fit goes over blocks of rows; ``together``: rows leave in groups."""
        kernel = as_kernel(self.kernel)
        if together and elsewhere(X):
            raise ValueError(
                "cv and groups need the rows in memory; rows of files and streams are held out singly"
            )
        if isinstance(self.centers, str) and self.centers == "auto" and not elsewhere(X):
            return kernel.takes != "values" and n_rows(X) > EXACT_ROWS
        if isinstance(self.centers, str) and self.centers == "all":
            if elsewhere(X):
                raise ValueError('centers="all" needs the rows in memory; give a number of centers')
            return False
        return True

    def _fit_table(self, X: Any, y: NDArray[Any], weight: Array | None, fold: Indices | None) -> Self:
        """Fit to rows in memory; rows of a fold leave together."""
        check_folds(fold, weight)
        self._begin(MemoryRows(X, y, weight), fold=fold)

        def part(f: int) -> Moments:
            members = np.flatnonzero(fold == f)
            return self._stream.gather(MemoryRows(X, y, weight).some(members))

        self._solve(None if fold is None else part)
        return self

    def _fit_elsewhere(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit to rows that are read block by block."""
        self._begin(self._named(X, y, sample_weight))
        self._solve()
        return self

    def _named(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Rows elsewhere; other columns are refused before anything is read, where their names are known."""
        self._know(feature_names(X, y, sample_weight))
        return as_rows(X, y, sample_weight)

    def _know(self, names: tuple[Any, ...] | None) -> None:
        """Keep the names of the columns of the first rows, and refuse others later."""
        self._check_names(names)
        if "_stream" not in self.__dict__ and names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _batch(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Rows that join or leave; those in memory are checked."""
        if elsewhere(X):
            return self._named(X, y, sample_weight)
        X, y, weight = self._table(X, y, sample_weight, reset="_stream" not in self.__dict__)
        return MemoryRows(X, y, None if sample_weight is None else weight)

    def _begin(self, rows: Rows, *, fold: Indices | None = None) -> None:
        """One pass for a sample, on which kernel and centers are chosen, and one for the moments."""
        self._check_memory(rows)
        source, rows = rows, RepeatedRows(rows)
        rng = generator(self.random_state)
        draw = Draw(self._n_drawn(), int(rng.integers(2**31)), labels=self._has_classes)
        with at_most(threads_within(self._budget().n_bytes, blas_threads())):
            drawn = survey(rows, draw, verbose=self.verbose)
        self._know(feature_names(rows))
        encode = self._encoder(drawn, self._columns(drawn))
        task, _ = self._task(encode, drawn, fold, source)
        kernel = as_kernel(self.kernel)
        if kernel.takes == "vectors" and np.ndim(getattr(kernel, "gamma", 0.0)) == 0:
            warn_of_scales(task.sample.X)
        with at_most(task.sizes.threads):
            choice = choose(kernel, task, rng)
            gather = Gatherer(choice, encode, precision_of(choice, task), task.sizes.threads)
        moments = gather(rows, verbose=self.verbose)
        chosen, index = choice.centers, drawn.sample().index
        self.kernel_ = choice.kernel
        self.X_fit_ = chosen.rows
        self.support_ = None if chosen.indices is None else index[chosen.indices]
        seen = index[:0] if chosen.unseen is None else np.delete(index, chosen.unseen)
        self._stream = Stream(gather, moments, drawn, draw, seen, fold)
        self._begun_with = settings(self, FIXED)

    def _columns(self, drawn: Drawn) -> Columns | None:
        """The check of blocks, these and later ones."""
        if as_kernel(self.kernel).takes != "vectors":
            return None
        X = drawn.sample().X
        if np.ndim(X) != 2 and not hasattr(X, "indptr"):
            raise ValueError(f"X of a block has {np.ndim(X)} dimensions; give blocks of b rows as (b, d)")
        self.n_features_in_ = int(X.shape[1])
        return Columns(self.n_features_in_)

    def _check_memory(self, rows: Rows) -> None:
        """Refuse, before the first pass, what is too large whatever the rows turn out to be."""
        if rows.n_rows is not None:
            X = rows.X if isinstance(rows, MemoryRows) else None
            sample = min(rows.n_rows, self._n_drawn())
            load = self._load(X, 1, sample, self._n_left_out(1, sample), rows.n_rows, rows)
            sizes_within(load, self._budget())

    def _load(self, X: Any, q: int, sample: int, left: int, n: int, rows: Rows | None) -> Load:
        """What the memory of a fit depends on: n rows like X (None: not known yet) with q targets, of which
        ``sample`` are held and ``left`` left out.
        """
        kernel = as_kernel(self.kernel)
        selector, n_centers = as_plan(self.centers, kernel, X, n)
        begun = "_stream" in self.__dict__
        if begun:
            # Kernel and centers are those of the first rows, however many have come since.
            kernel, selector, n_centers = self.kernel_, Given(self.X_fit_), n_rows(self.X_fit_)
        return Load(
            row=0.0 if X is None else row_bytes(X),
            sample=sample,
            left=left,
            q=q,
            n_centers=n_centers,
            selector=selector,
            threads=blas_threads(),
            n=n,
            item=4 if getattr(X, "dtype", None) == np.float32 else 8,
            classes=self._has_classes,
            kernels=1 if kernel.settled else SEVERAL,
            alphas=len(ALPHAS) if positive_or_loo("alpha", self.alpha) is None else 1,
            copied=isinstance(rows, LocalRows) and not isinstance(getattr(rows, "X", None), np.ndarray),
            blocks=blocks_of(kernel, X),
            floor=0 if begun else 2 * wanted_centers(self.centers),
            least=OF_EACH * max(q, 2) if self._has_classes else 0,
        )

    def _task(
        self, encode: Encoder, drawn: Drawn, fold: Indices | None, rows: Rows | None = None
    ) -> tuple[Task, Training]:
        """The sample with its targets, and what to do with it; ``rows`` where a pass over them is to come."""
        sample = drawn.sample()
        raw = Block(sample.X, sample.y, sample.weight, 0)
        block, label = encode(raw), self._labels_of(encode, raw)
        some_fold = None if fold is None else fold[sample.index]
        drawn = drawn.least()
        fades = bool((drawn.faded < 1.0).any())
        training = Training(
            block.X,
            block.y,
            weight_of(block),
            weight_of(raw),
            weight_reading(self.weights, drawn.tally),
            some_fold,
            drawn.represents() if fades or self._has_classes else None,
            drawn.faded if fades else None,
        )
        block = block if block.weight is None else replace(block, unit=training.unit)
        q = block.y.shape[1]
        left = len(replace(drawn, size=self._n_left_out(q, drawn.size)).least().key)
        load = self._load(block.X, q, block.n_rows, left, drawn.n_rows, rows)
        sizes = sizes_within(load, self._budget())
        return Task(
            sample=block,
            label=label,
            fold=some_fold,
            criterion=self._criterion(training, label),
            selector=sizes.selector,
            n_centers=load.n_centers,
            alpha=positive_or_loo("alpha", self.alpha),
            penalty=penalty_of(self.penalty),
            intercept=self._has_intercept,
            budget=self._budget(),
            sizes=sizes,
            verbose=self.verbose,
            doubt=training.doubt,
        ), training

    def _solve(self, part: Callable[[int], Moments] | None = None) -> None:
        """Choose alpha, and set what follows from it; ``part`` gives the moments of rows that leave together."""
        stream = self._stream
        drawn = self._left_out_of(stream)
        task, training = self._task(stream.gather.encode, drawn, stream.fold)
        index = drawn.sample().index
        judges = enough(np.flatnonzero(~np.isin(index, stream.seen)))
        with at_most(task.sizes.threads):
            tuned = finish(stream.gather.choice, stream.moments, task, judges=judges, part=part)
        warn_of_lost_digits(training.X, tuned.kernel, tuned.alpha, tuned.error)
        self._store(training.X, tuned)
        self.loo_index_ = index
        self._conclude(training, tuned, stream.moments)

    def _left_out_of(self, stream: Stream) -> Drawn:
        """The rows that are left out: so few that outputs for all targets and alphas can be kept."""
        if loo_size(self.loo_rows) is None or self.kernel_.takes == "values":
            return stream.drawn
        return replace(stream.drawn, size=self._n_left_out(len(stream.moments.t), stream.drawn.size)).least()

    def _n_left_out(self, q: int, size: int) -> int:
        """How many of the rows drawn are left out for q targets."""
        most = loo_size(self.loo_rows)
        if most is None or as_kernel(self.kernel).takes == "values":
            return size
        return min(size, rows_left_out(most, q))

    def _n_drawn(self) -> int:
        """How many rows are held: all where the kernel is a matrix."""
        size = loo_size(self.loo_rows)
        if size is None or as_kernel(self.kernel).takes == "values":
            return EVERY_ROW
        return max(size, 2 * wanted_centers(self.centers))

    def _report(self, tuned: Tuned, training: Training, loo: str, criterion: str) -> FitReport:
        stream = self.__dict__.get("_stream")
        return fit_report(
            self,
            tuned,
            loo,
            criterion,
            n_rows=len(training.Y) if stream is None else stream.moments.n_rows,
            centers="the distinct rows" if stream is None else stream.gather.choice.words,
            products="" if stream is None else stream.gather.precision.words,
            fold=training.fold,
        )

    def _continue(self, decay: float, **told: Any) -> None:
        """Refuse what can not go on; begin anew, with what is ``told``, where nothing was begun."""
        if isinstance(self.centers, str) and self.centers == "all":
            raise ValueError('centers="all" needs all rows at once; give a number of centers, or "auto"')
        if self.__dict__.get("_lean", False):
            raise ValueError("a lean copy has no moments to add rows to; continue the model it is a copy of")
        if self.cv is not None:
            raise ValueError(f"cv={self.cv!r}; rows that come one after the other leave one by one: use cv=None")
        share("decay", decay)
        if decay < 1 and self.weights == "counts":
            raise ValueError(f'decay={decay!r} leaves parts of rows, which are not counts; use weights="auto"')
        if "_stream" in self.__dict__:
            refuse_changes(self._begun_with, settings(self, FIXED))
        else:
            self._begin_again(told)

    def _begin_again(self, told: dict[str, Any]) -> None:
        """Begin a stream, with the rows of a fit that made each a center, if there was one."""
        before = vars(self).copy()
        self._start_anew()
        self.__dict__ |= told
        if "_kept" in before:
            self.__dict__ |= {name: before[name] for name in before if name == "feature_names_in_"}
            self._begin(before["_kept"].rows(before["X_fit_"]))
        elif "dual_coef_" in before:
            raise ValueError(
                f"kernel={self.kernel!r} was fitted on kernel values, which are not kept; partial_fit would "
                f"forget the {len(before['loo_index_'])} rows of fit; pass the kernel, or begin with a clone"
            )

    def _partial_fit(self, rows: Rows, *, decay: float) -> Self:
        if "_stream" in self.__dict__:
            stream = self._stream.joined(rows, decay)
            weight_reading(self.weights, stream.drawn.tally)
            self._know(feature_names(rows))
            self._stream = stream
        else:
            self._begin(rows)
        self._forget_solution()
        return self

    def _remove(self, X: Any, y: Any, sample_weight: Any) -> Self:
        check_is_fitted(
            self,
            "_stream",
            msg="%(name)s holds no moments from which rows could be subtracted: it is not fitted, is a "
            "lean copy, or has every row as a center; fit it with centers=..., or fit it anew without these rows",
        )
        refuse_changes(self._begun_with, settings(self, FIXED))
        rows = RepeatedRows(self._batch(X, y, sample_weight))
        less = self._stream.gather(rows)
        self._know(feature_names(rows))
        self._stream = self._stream.left(rows, less)
        self._forget_solution()
        return self

    def _forget_solution(self) -> None:
        """What is chosen stays; the rest is solved for when it is asked for."""
        for name in [name for name in vars(self) if name.endswith("_") and name not in CHOSEN]:
            delattr(self, name)
        self._pending = Pending()
