"""Learning from a stream: time for each row and memory from first to last, and errors beside river's models.

Rows come in blocks of 1000; each row is predicted before it is learned. Streams: waveform, which stands still;
ringnorm whose means move on a circle; and clusters of two classes that move through a cube, each in its own
direction. ``OnlineFisherClassifier`` has 500 centers at most; "tuned" means kernel and alpha of a
``KernelFisherClassifier`` fitted to the first 1000 rows. river's models (pip install river) get rows one by one,
as they must, standardized on the way where it helps; they see the first --peer-rows rows. All errors of a table
are over the same rows, the first 1000 left out.

--rows 1000000 is the full run. Times are those of the process. --flat compares what a row costs after a tenth of
the rows and after all of them, in turns and best of seven, so that other work on the machine counts little.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import numpy as np
from common import heading, table

from mercer import KernelFisherClassifier, OnlineFisherClassifier
from mercer.datasets import make_ringnorm, make_waveform

BLOCK = 1000
BUDGET = 500
Block = tuple[np.ndarray, np.ndarray]


def still_waveform(n_blocks: int) -> Iterator[Block]:
    for block in range(n_blocks):
        X, y = make_waveform(BLOCK, random_state=block)
        yield X, (y > 0).astype(int)


def moving_ringnorm(n_blocks: int) -> Iterator[Block]:
    """The origin goes once around a circle of radius 4 in 200,000 rows."""
    for block in range(n_blocks):
        X, y = make_ringnorm(BLOCK, random_state=block)
        angle = 2 * np.pi * (block * BLOCK + np.arange(BLOCK)) / 200_000
        X[:, :2] += 4 * np.column_stack([np.cos(angle), np.sin(angle)])
        yield X, (y > 0).astype(int)


def moving_clusters(n_blocks: int, *, d: int = 4, k: int = 30, spread: float = 0.12) -> Iterator[Block]:
    """k clusters in the unit cube, thrown back by its walls, that cross it in about 100,000 rows."""
    rng = np.random.default_rng(0)
    center, label = rng.uniform(size=(k, d)), np.arange(k) % 2
    speed = rng.normal(size=(k, d))
    speed *= 1e-5 / np.linalg.norm(speed, axis=1, keepdims=True)
    for block in range(n_blocks):
        which, row = rng.integers(0, k, size=BLOCK), block * BLOCK + np.arange(BLOCK)
        place = center[which] + row[:, None] * speed[which]
        # A walk between two walls is a straight walk, folded.
        X = 1 - np.abs(1 - place % 2) + spread * rng.normal(size=(BLOCK, d))
        yield X, label[which]


STREAMS: dict[str, Callable[[int], Iterator[Block]]] = {
    "waveform-still": still_waveform,
    "ringnorm-moving": moving_ringnorm,
    "clusters-moving": moving_clusters,
}


@dataclass
class Record:
    """Errors, seconds and resident MiB of each block."""

    errors: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    def error(self, n_blocks: int) -> float:
        return 100 * float(np.mean(self.errors[1:n_blocks]))

    def milliseconds(self, blocks: slice) -> float:
        return float(np.sum(self.seconds[blocks])) * 1e3 / (len(self.seconds[blocks]) * BLOCK)


def resident() -> float:
    """MiB of this process in memory; nan where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20
    except OSError:
        return float("nan")


Step = Callable[[np.ndarray, np.ndarray], float]


def watch(step: Step, blocks: Iterator[Block]) -> Record:
    """Let a model predict and learn block by block; ``step`` returns the share it got wrong before it learned."""
    record = Record()
    for X, y in blocks:
        start = time.process_time()
        record.errors.append(step(X, y))
        record.seconds.append(time.process_time() - start)
        record.memory.append(resident())
    return record


def mercer_step(forget: float, *, tuned: bool) -> Step:
    model = OnlineFisherClassifier(max_centers=BUDGET, decay=forget)

    def step(X: np.ndarray, y: np.ndarray) -> float:
        if tuned and not hasattr(model, "state_"):
            tune(model, X, y)
        before = total_loss(model)
        model.partial_fit(X, y, classes=[0, 1])
        return (total_loss(model) - before) / len(y)

    return step


def total_loss(model: OnlineFisherClassifier) -> float:
    """What was lost so far on rows before they were learned."""
    return model._fitted.details.prequential.total_loss if hasattr(model, "state_") else 0.0


def tune(model: OnlineFisherClassifier, X: np.ndarray, y: np.ndarray) -> None:
    """Kernel and alpha by leave-one-out on these rows."""
    batch = KernelFisherClassifier(random_state=0).fit(X, y)
    model.set_params(kernel=batch.kernel_, alpha=batch.alpha_)


def flatness(stream: Callable[[int], Iterator[Block]], n_blocks: int) -> list[object]:
    """Milliseconds a row after a tenth of the blocks and after all, their ratio, and the memory at both times."""
    model, kept, memory = OnlineFisherClassifier(max_centers=BUDGET, decay=0.9998), [], []
    for number, (X, y) in enumerate(stream(n_blocks + 2)):
        if number == 0:
            tune(model, X, y)
        if number in (n_blocks // 10, n_blocks):
            kept.append((deepcopy(model), [(X, y)]))
            memory.append(resident())
        elif number in (n_blocks // 10 + 1, n_blocks + 1):
            kept[-1][1].append((X, y))
        model.partial_fit(X, y, classes=[0, 1])
    seconds = np.array([[seconds_of(deepcopy(early), rows) for early, rows in kept] for _ in range(7)])
    first, last = 1e3 * seconds.min(axis=0) / (2 * BLOCK)
    return [f"{first:.3f}", f"{last:.3f}", last / first, f"{memory[0]:.0f} -> {memory[1]:.0f}"]


def seconds_of(model: OnlineFisherClassifier, blocks: list[Block]) -> float:
    start = time.process_time()
    for X, y in blocks:
        model.partial_fit(X, y)
    return time.process_time() - start


def river_step(model) -> Step:
    def step(X: np.ndarray, y: np.ndarray) -> float:
        wrong = 0
        for x, label in zip(X.tolist(), y.tolist()):
            row = dict(enumerate(x))
            wrong += model.predict_one(row) != label
            model.learn_one(row, label)
        return wrong / len(y)

    return step


def river_models(*, forests: bool) -> dict[str, object]:
    forest, linear, preprocessing, tree = (
        import_module(f"river.{name}") for name in ("forest", "linear_model", "preprocessing", "tree")
    )
    models = {
        "river logistic regression": preprocessing.StandardScaler() | linear.LogisticRegression(),
        "river Hoeffding tree": tree.HoeffdingTreeClassifier(),
        "river Hoeffding adaptive tree": tree.HoeffdingAdaptiveTreeClassifier(seed=0),
    }
    if forests:
        models["river adaptive random forest"] = forest.ARFClassifier(seed=0)
    return models


def steps(n_blocks: int, *, peers: bool, forests: bool) -> dict[str, tuple[Step, int]]:
    """Every model with the number of blocks it gets."""
    found = {
        "mercer, defaults": (mercer_step(1.0, tuned=False), n_blocks),
        "mercer, tuned": (mercer_step(1.0, tuned=True), n_blocks),
        "mercer, tuned, decay=0.9998": (mercer_step(0.9998, tuned=True), n_blocks),
    }
    if peers:
        found |= {name: (river_step(model), 0) for name, model in river_models(forests=forests).items()}
    return found


def line(name: str, record: Record, compared: int) -> list[object]:
    """First and last tenth, and the error over the blocks that all models saw."""
    n = len(record.seconds)
    tenth = max(1, n // 10)
    first, last = record.milliseconds(slice(1, 1 + tenth)), record.milliseconds(slice(n - tenth, n))
    memory = f"{record.memory[min(tenth, n - 1)]:.0f} -> {record.memory[-1]:.0f}"
    final = 100 * float(np.mean(record.errors[-tenth:]))
    return [name, n * BLOCK, record.error(compared), final, f"{first:.3f}", f"{last:.3f}", last / first, memory]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--peer-rows", type=int, default=100_000)
    parser.add_argument("--streams", nargs="+", choices=list(STREAMS), default=list(STREAMS))
    parser.add_argument("--models", nargs="+", help="only those whose names contain one of these words")
    parser.add_argument("--no-peers", action="store_true", help="without river")
    parser.add_argument(
        "--no-forest", action="store_true", help="without river's forest, which takes 20 times as long"
    )
    parser.add_argument("--flat", action="store_true", help="only whether time and memory stay")
    args = parser.parse_args()
    n_blocks, peer_blocks = max(2, args.rows // BLOCK), max(2, min(args.rows, args.peer_rows) // BLOCK)
    print(heading())
    if args.flat:
        rows = [[name, n_blocks * BLOCK, *flatness(STREAMS[name], n_blocks)] for name in args.streams]
        print(
            table(rows, ["mercer, tuned, decay=0.9998", "rows", "ms/row at a tenth", "at the end", "ratio", "MiB"])
        )
        return
    header = ["model", "rows", "error %", "at its end", "ms/row first", "last", "ratio", "MiB"]
    for name in args.streams:
        rows, models = [], steps(n_blocks, peers=not args.no_peers, forests=not args.no_forest)
        for label, (step, blocks) in models.items():
            if args.models and not any(word in label for word in args.models):
                continue
            record = watch(step, STREAMS[name](blocks or peer_blocks))
            rows.append(line(label, record, peer_blocks))
        print(f"{name}; error over rows {BLOCK} to {peer_blocks * BLOCK}, time and memory of first and last tenth")
        print(table(rows, header) + "\n", flush=True)


if __name__ == "__main__":
    main()
