"""The benchmark scripts run, on archives of the right form with next to nothing in them."""

import gzip
import io
import json
import re
import runpy
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from mercer.datasets import IDA_NAMES

SCRIPTS = Path(__file__).parents[2] / "benchmarks"
# Each is a benchmark, however small.
pytestmark = pytest.mark.slow


def run(script, *arguments):
    """What a script prints, run in this process: one of its own would spend seconds on imports."""
    known, printed = set(sys.modules), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), redirect_stdout(printed):
        warnings.simplefilter("ignore")
        patch.setattr(sys, "argv", [script, *map(str, arguments)])
        patch.syspath_prepend(SCRIPTS)
        try:
            runpy.run_path(str(SCRIPTS / script), run_name="__main__")
        finally:
            # The next script finds its neighbors as if it were the first.
            for name in set(sys.modules) - known:
                if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == SCRIPTS:
                    del sys.modules[name]
    return printed.getvalue()


@pytest.fixture
def ida(tmp_path, rng):
    folder = tmp_path / "ida"
    folder.mkdir()
    for name in IDA_NAMES:
        y = np.resize([-1, 1], 40)
        order = np.array([rng.permutation(40) for _ in range(2)])
        X = rng.normal(size=(40, 3)) + y[:, None]
        np.savez(folder / f"{name}.npz", X=X, y=y, train=order[:, :25], test=order[:, 25:])
    return folder


def test_ida_prints_errors_and_probabilities_beside_stored_scores(ida, tmp_path):
    score = {"error": 1.0, "log_loss": 0.1, "brier": 0.1, "seconds": 1.0}
    stored = tmp_path / "svc.json"
    stored.write_text(json.dumps({name: [score] for name in IDA_NAMES}))
    lines = run("ida.py", "--data", ida, "--svc", stored).splitlines()
    assert {line.split()[0] for line in lines[-14:]} == {*IDA_NAMES, "mean"}
    assert sum(line.startswith("mean of ten") for line in lines) == 1


def test_digits_says_how_many_rows_were_used(tmp_path, rng):
    (tmp_path / "optdigits").mkdir()
    y = np.resize(np.arange(10), 5620)
    X = (rng.integers(0, 3, size=(5620, 64)) + y[:, None]).astype(np.uint8)
    np.savez(tmp_path / "optdigits" / "optdigits.npz", X=X, y=y)
    lines = run("digits.py", "--data", tmp_path, "--sets", "optdigits", "--max-rows", 100).splitlines()
    errors, probabilities = (line for line in lines if line.startswith("optdigits "))
    assert errors.startswith("optdigits    100 of 3823")
    platt, isotonic, chosen = map(float, probabilities.split()[1:4])
    # These classes overlap, with log-losses between those of no error and of ten equal probabilities.
    assert all(0.0 < loss < np.log(10) for loss in (platt, isotonic, chosen))


def test_coverage_prints_shares_and_widths():
    lines = run("coverage.py", "--rows", 30, "--draws", 1, "--problems", "sinc", "funnel").splitlines()
    assert lines[-1].startswith("30 rows: mean: ")
    assert [line.split()[:2] for line in lines[-4:-2]] == [["sinc", "30"], ["funnel", "30"]]


def test_components_prints_its_tables():
    lines = run("components.py", "--rows", 400, "--draws", 1).splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("ringnorm", "waveform"))] == [
        *["ringnorm"] * 4,
        *["waveform"] * 4,
    ]
    assert lines[-1].startswith("fault 1: ")
    lines = run("components.py", "--oriented", "--rows", 150).splitlines()
    plain, weak = ([float(value) for value in line.split()[-5:-1]] for line in lines[-9:-7])
    # With a large penalty the components are those of kernel PCA.
    assert_allclose(weak, plain, rtol=0.05)


def test_canonical_prints_what_was_planted_and_a_line_for_each_method(tmp_path, rng):
    z = rng.normal(size=(200, 3))
    names, y = ("fou", "fac", "kar", "pix", "zer", "mor"), np.resize(np.arange(10), 200)
    (tmp_path / "mfeat").mkdir()
    (tmp_path / "nutrimouse").mkdir()
    features = {name: z @ rng.normal(size=(3, 12)) + 0.1 * rng.normal(size=(200, 12)) for name in names}
    np.savez(tmp_path / "mfeat" / "mfeat.npz", y=y, **features)
    labels = {"genotype": np.resize(["ppar", "wt"], 40), "diet": np.resize(["fish", "lin", "ref"], 40)}
    np.savez(
        tmp_path / "nutrimouse" / "nutrimouse.npz", gene=features["fou"][:40], lipid=features["mor"][:40], **labels
    )
    lines = run("canonical.py", "--data", tmp_path, "--rows", 200, "--draws", 1).splitlines()
    first = next(line for line in lines if line.startswith("new rows"))
    assert float(first.split()[2]) > 0.6
    assert sum("KernelCCA, linear" in line for line in lines) == 5


def test_fit_times_prints_a_line_for_each_set():
    lines = run("fit_times.py", "--most", 60).splitlines()
    assert [float(line.split()[-1]) > 0.0 for line in lines[-6:]] == [True] * 6


def test_rounding_prints_what_is_lost_and_kept():
    lines = run("rounding.py", "--rows", 2000).splitlines()
    assert sum(line.startswith("other blocks") for line in lines) == 4
    assert all(float(line.split()[-3]) < 1e-6 for line in lines[-8:])


def test_sparse_prints_its_tables_and_goes_on_where_it_stopped(ida, tmp_path, rng):
    (tmp_path / "regression").mkdir()
    X = rng.normal(size=(500, 4))
    np.savez(tmp_path / "regression" / "boston_housing.npz", X=X, y=X[:, 0])
    out = tmp_path / "sparse.json"
    sets = ("--sets", "banana", "boston", "sinc")
    command = ["sparse_models.py", "--data", tmp_path, "--out", out, "--quick", *sets]
    lines = run(*command).splitlines()
    assert {line.split()[0] for line in lines if line} >= {"banana", "boston", "sinc", "mean"}
    assert set(json.loads(out.read_text())) == {"banana", "boston", "sinc"}
    out.write_text(json.dumps({name: [[7.0, 1.0, 1.0]] for name in ("banana", "boston", "sinc")}))
    assert "banana: 7, 1.0 % kept" in run(*command)


def test_sparse_has_the_algorithms_of_the_theses(ida, tmp_path, rng):
    X = rng.normal(size=(60, 2))
    arrays = {"X_train": X[:40], "y_train": X[:40, 0] > 0, "X_test": X[40:], "y_test": X[40:, 0] > 0}
    (tmp_path / "ripley_synth").mkdir()
    np.savez(tmp_path / "ripley_synth" / "ripley_synth.npz", **arrays)
    algorithm = ("--selection", "residual", "--penalty", "orthogonal", "--own", "--tables", "ripley", "ida")
    sets = ("--quick", "--sets", "banana", "--out", tmp_path / "sparse.json")
    lines = run("sparse_models.py", "--data", tmp_path, *algorithm, *sets).splitlines()
    assert lines[-3].split()[-1] == "10"
    assert any(line.startswith("banana") for line in lines)


def tables(text):
    """The cells of each table by its title: columns are two or more spaces apart."""
    found = {}
    for block in text.split("\n\n"):
        lines = block.splitlines()
        rule = [i for i, line in enumerate(lines) if line and set(line) == {"-"}]
        if rule:
            found[lines[rule[0] - 2]] = [re.split(r"\s{2,}", line.strip()) for line in lines[rule[0] + 1 :]]
    return found


def test_cost_prints_one_line_for_each_size_engine_and_neighbor():
    out = tables(run("cost.py", "--sizes", 30, 50, "--repeats", 1, "--quick"))
    sizes, engines, busy = out.values()
    assert [(line[0], line[4]) for line in sizes] == [("30", "30"), ("50", "50")]
    assert [line[3] for line in engines] == ["eigh of 100 rows", "eigh of 200 rows", "loop, 20 centers"]
    assert [line[0] for line in busy] == ["fit of 50 rows", "eigh of 50 rows"]


def adult_archive(folder, rng):
    """The census data with the right categories in columns 1, 3, 5 ... and nothing else in them."""
    (folder / "adult").mkdir()
    X = rng.integers(0, 3, size=(48842, 14))
    y = (X[:, 0] + X[:, 1] < 2).astype(np.uint8)
    np.savez(folder / "adult" / "adult.npz", X=X, y=y)


def test_cost_prints_test_errors_of_sets(tmp_path, rng):
    (tmp_path / "covtype_20k").mkdir()
    y = np.resize(np.arange(1, 8), 140).astype(np.uint8)
    X = (10 * y[:, None] + rng.integers(0, 3, size=(140, 10))).astype(np.int16)
    bits = rng.integers(0, 256, size=(140, 6), dtype=np.uint8)
    np.savez(tmp_path / "covtype_20k" / "covtype_20k.npz", X_quant=X, X_bits=bits, y=y)
    out = tables(run("cost.py", "--parts", "sets", "--data", tmp_path, "--sets", "covtype"))
    assert out["Test errors"][0][:5] == ["covtype", "70", "54", "70", "70"]


def test_first_fit_compares_four_models_on_five_folds(tmp_path, rng):
    adult_archive(tmp_path, rng)
    out = run("first_fit.py", "--data", tmp_path, "--rows", 200)
    lines = tables(out)["Adult, 200 rows in 5 folds, 30 features"]
    assert [line[2] for line in lines][1] == "1.00"
    assert out.count("  KernelFisherClassifier():") == 5
    assert all(0.5 < float(line[3]) <= 1.0 for line in lines)
    assert len(lines) == 4


def test_columns_compares_kernels_over_columns_with_pipelines(tmp_path, rng):
    adult_archive(tmp_path, rng)
    (lines,) = tables(run("columns.py", "--data", tmp_path, "--rows", 150, "--draws", 1)).values()
    assert len(lines) == 6
    # The class depends on a number and a name.
    assert all(float(line[1]) < 20.0 for line in lines)


def test_tuning_speed_searches_up_to_a_size():
    command = ("tuning_speed.py", "--sizes", 40, 50, "--search-rows", 40, "--repeats", 1, "--quick")
    (lines,) = tables(run(*command)).values()
    assert [line[0] for line in lines] == ["40", "50"]
    assert [line[-1] == "-" for line in lines] == [False, True]


def test_one_pass_prints_differences_at_rounding_level():
    (lines,) = tables(run("one_pass.py", "--parts", "agree", "--rows", 2000)).values()
    assert len(lines) > 3
    assert all(float(line[-1]) < 1e-6 for line in lines)


def test_centers_counts_the_centers_others_need(tmp_path):
    arguments = ("--data", tmp_path, "--sets", "ringnorm", "--max-rows", 300, "--quick", "--keep", tmp_path)
    lines = run("centers.py", *arguments).splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["ringnorm", "mean"]
    assert (tmp_path / "ringnorm-0.json").exists()
    assert run("centers.py", *arguments).splitlines()[-1] == lines[-1]


def test_threads_finds_no_error_no_torn_answer_and_no_row_lost():
    out = run("threads.py", "--seconds", "0.3", "--calls", "3")
    figures = [line.split()[-7:] for line in out.split("---\n")[1].splitlines()]
    assert len(figures) == 9
    for calls, errors, differ, calls_while, errors_while, torn, lost in figures:
        assert int(calls) > 0
        assert int(calls_while) > 0
        assert {errors, differ, errors_while, torn, lost} <= {"0", "-"}


def test_lapack_compares_routines_and_fits():
    small = ["--sizes", 30, "--both", 0, "--rows", 60, "--repeats", 1]
    routines, fits = tables(run("lapack.py", "--parts", "seconds", "fits", *small)).values()
    assert len(routines) == 8
    assert all(float(line[-2]) > 0.0 for line in routines)
    assert [line[2] for line in fits] == ["1", "2", "1"]


def test_lapack_looks_at_the_lock_while_a_routine_runs():
    (lines,) = tables(run("lapack.py", "--parts", "lock", "--locked", 50)).values()
    assert {line[1] for line in lines} == {"mercer", "numpy", "scipy"}
    assert all(float(line[3]) > 0.0 for line in lines)


def test_tabular_prints_sets_and_mean_ranks(ida, tmp_path, rng):
    (tmp_path / "regression").mkdir()
    X = rng.normal(size=(60, 3))
    np.savez(tmp_path / "regression" / "abalone.npz", X=X, y=X[:, 0] ** 2)
    some = ["--sets", "ida/heart", "abalone", "--splits", 2, "--methods", "plain", "relevance", "linear"]
    picture = tmp_path / "ranks.png"
    lines = run("tabular.py", "--data", tmp_path, *some, "--picture", picture).splitlines()
    assert sum(line.startswith(("ida/heart ", "abalone ")) for line in lines) == 2
    ranks = [line.split() for line in lines if line.startswith(("error %", "log-loss", "RMSE", "1 - R²"))]
    assert len(ranks) == 12
    assert picture.stat().st_size > 0


def test_raw_tables_prints_adult_in_words_with_gaps(tmp_path, rng):
    (tmp_path / "adult").mkdir()
    np.savez(tmp_path / "adult" / "adult.npz", X=rng.integers(2, size=(90, 14)), y=np.arange(90) % 2)
    adult = ["--data", tmp_path, "--sets", "adult", "--methods", "boosting"]
    listed = run("raw_tables.py", *adult, "--list").splitlines()[-2].split()
    assert listed[:4] == ["adult", "90", "14", "income"]
    lines = run("raw_tables.py", *adult, "--splits", 2).splitlines()
    # Rows, columns, of which eight hold words, no dates; workclass, occupation and country have gaps.
    assert [line.split()[1:6] for line in lines if line.startswith("adult ")] == [["90", "14", "8", "0", "3"]]
    assert sum(line.startswith(("error % ", "log-loss ")) for line in lines) == 2


def test_real_rows_prints_models_and_goes_on_from_stored_figures(tmp_path, rng):
    for folder, name in (("small_uci", "magic"), ("letter", "letter")):
        (tmp_path / folder).mkdir()
        y = np.arange(300) % 3
        np.savez(tmp_path / folder / f"{name}.npz", X=rng.normal(size=(300, 3)) + y[:, None], y=y)
    few = ["--sets", "magic", "letter", "--rows", 40, "--models", "every row", "n/10 centers", "n/10 at random"]
    store = tmp_path / "figures.csv"
    for draws, stored in ((2, 12), (3, 18)):
        lines = run("real_rows.py", "--data", tmp_path, *few, "--draws", draws, "--store", store).splitlines()
        assert sum(line.startswith(("every row ", "n/10 centers ", "n/10 at random ")) for line in lines) == 3
        assert len(store.read_text().splitlines()) == stored
    assert lines[-1].startswith("n/10 centers: 40 rows ")


def test_several_kernels_are_weighted_by_every_rule(tmp_path, rng):
    (tmp_path / "mfeat").mkdir()
    y = np.arange(60) % 2
    tables = {name: rng.normal(size=(60, 2)) + y[:, None] for name in ("fac", "fou", "kar", "mor", "pix", "zer")}
    np.savez(tmp_path / "mfeat" / "mfeat.npz", y=y, **tables)
    few = ["--rows", 30, "--splits", 1, "--size", 60, "--count", 4]
    lines = run("several.py", "--data", tmp_path, "--views", "--many", *few).splitlines()
    assert sum(line.startswith("sum, ") for line in lines) == 6
    assert lines[-1].split()[0] == "auto"


def test_invariances_are_measured_with_and_without_copies(tmp_path):
    (tmp_path / "mnist").mkdir()
    X, y = load_digits(n_class=2, return_X_y=True)
    arrays = {"X_train": X[:60], "y_train": y[:60], "X_test": X[60:100], "y_test": y[60:100]}
    np.savez(tmp_path / "mnist" / "mnist.npz", **arrays)
    common = ["--data", tmp_path, "--sets", "mnist", "--few", 20, "--centers", 30, "--models", "plain"]
    lines = run("invariances.py", *common, "shifts").splitlines()
    found = {line.split()[0]: line.split() for line in lines if line.startswith(("plain ", "shifts "))}
    assert found["plain"][1] == found["shifts"][1] == "30"
    assert sum("left-out log-loss" in line for line in lines) == 15
    known = run("invariances.py", *common, "--known", 1, 5)
    assert "left-out log-loss" not in known
    assert "blur 1, Polynomial(coef0=0.5, degree=5)" in known


def test_figures_of_the_theses_are_made(tmp_path):
    (tmp_path / "usps").mkdir()
    X, y = load_digits(return_X_y=True)
    X = np.round(1000 * (X / 8 - 1)).astype(np.int16)
    arrays = {"X_train_milli": X[:700], "y_train": y[:700], "X_test_milli": X[700:], "y_test": y[700:]}
    np.savez(tmp_path / "usps" / "usps.npz", **arrays)
    small = ["--digits", 4, "--rows", 60, 120, "--draws", 1, "--pictures", tmp_path]
    lines = run("theses.py", "--data", tmp_path, *small).splitlines()
    last = {line.rsplit(maxsplit=1)[0].strip(): line.split()[-1] for line in lines if line.strip()}
    assert float(last["kernel Fisher"]) > max(float(last["PCA"]), float(last["kernel PCA"]))
    assert last["mercer"] == last["plain NumPy"]
    assert sum(line.startswith(("greedy, ", "every row")) for line in lines) == 4
    assert sum(" rows, noise " in line and not line.startswith(" ") for line in lines) == 9
    assert {path.name for path in tmp_path.glob("*.png")} == {"usps_directions.png", "usps_greedy.png"}


def test_structured_prints_a_line_for_each_kind_of_rows(tmp_path, rng):
    for name in ("promoters", "trec_qc", "news_pairs"):
        (tmp_path / name).mkdir()
    y = np.resize([0, 1], 60)
    seq = ["".join(rng.choice(list("acgt" if label else "aacg"), 30)) for label in y]
    np.savez(tmp_path / "promoters" / "promoters.npz", seq=seq, y=y)
    words = [" ".join(rng.choice(["who", "what", "is", "was", "this"][label:], 6)) for label in y]
    rows = [f"{'test' if i > 45 else 'train'}\tC{y[i]}\t{word}" for i, word in enumerate(words)]
    table = "\n".join(["part\tcoarse\tquestion", *rows, ""])
    (tmp_path / "trec_qc" / "trec_qc.tsv.gz").write_bytes(gzip.compress(table.encode()))
    np.savez(tmp_path / "news_pairs" / "pcmac.npz", X=rng.integers(0, 3, (60, 8)) + y[:, None], y=y + 1)
    sets = ["promoters", "trec_qc", "pcmac"]
    lines = run("structured.py", "--data", tmp_path, "--folds", 2, "--sets", *sets).splitlines()
    assert [line.split()[0] for line in lines[-3:]] == sets
    assert all(0.0 <= float(line.split()[2]) <= 60.0 for line in lines[-3:])


def test_structured_measures_many_strings_and_the_recursion():
    lines = run("structured.py", "--large", 400, "--pairs", 10).splitlines()
    (fit,) = (line.split() for line in lines if line.startswith("400 "))
    assert fit[1] == "100"
    # A motif of eight letters in half of the strings: better than chance, which is 50 %.
    assert float(fit[-1]) < 45.0
    ratios = [float(line.split()[-1]) for line in lines if line.split()[1:2] == ["10"]]
    assert len(ratios) == 2
    assert min(ratios) > 1.0


def test_speech_prints_errors_and_keeps_them(tmp_path, rng):
    (tmp_path / "fsdd").mkdir()
    (tmp_path / "japanese_vowels").mkdir()
    speaker, digit, index = (part.ravel() for part in np.meshgrid(range(2), range(2), [0, 9]))
    length = np.full(len(digit), 2400)
    tones = [np.sin((0.2 + d) * np.arange(2400)) + 0.01 * rng.normal(size=2400) for d in digit]
    arrays = {"speaker": speaker, "digit": digit, "index": index, "length": length}
    np.savez(tmp_path / "fsdd" / "fsdd_pcm.npz", pcm=(1000 * np.concatenate(tones)).astype(np.int16), **arrays)
    y, length = np.tile([1, 2], 6), np.full(12, 8)
    frames = rng.normal(size=(96, 2)) + 5.0 * np.repeat(y, 8)[:, None]
    vowels = {"frames": frames, "length": length, "y": y, "n_train": 8}
    np.savez(tmp_path / "japanese_vowels" / "japanese_vowels.npz", **vowels)
    store = tmp_path / "results.json"
    models = ["mixtures 1", "SVM on summaries"]
    command = [
        "speech.py",
        "--data",
        tmp_path,
        "--parts",
        "official",
        "vowels",
        "--models",
        *models,
        "--store",
        store,
    ]
    lines = run(*command).splitlines()
    assert [line.split()[-4] for line in lines if line.startswith("mixtures 1")] == ["0.00", "0.00"]
    assert len(json.loads(store.read_text())) == 4
    command = ["speech.py", "--data", tmp_path, "--parts", "probabilities", "--speakers", 2, "--models", models[0]]
    lines = run(*command).splitlines()
    right, sure, loss, slope = map(float, next(each for each in lines if "1, official" in each).split()[-4:])
    assert right == 100.0
    assert 50.0 < sure <= 100.0
    assert loss < np.log(2)
    assert 0.0 < slope <= 1.0
    lines = run("speech.py", "--data", tmp_path, "--frames", 200, "--models", "mixtures 1").splitlines()
    assert lines[-3].startswith("200 frames")
    peak, error = map(float, lines[-1].split()[-2:])
    assert peak > 0.0
    assert error == 0.0


def test_noise_names_the_lines_outside_of_two_standard_errors():
    lines = run("noise.py", "--rows", 24, "--draws", 2, "--parts", "kernels,cca").splitlines()
    marked = [line for line in lines if line.startswith("Kernel") and " !" in line]
    assert sum(line.startswith("Kernel") for line in lines) == 4
    assert f"outside of two standard errors: {len(marked)} of 4 lines" in lines


def test_size_counts_each_room_and_fits_are_compared_with_a_revision():
    if not (Path(__file__).parents[2] / ".git").exists():
        pytest.skip("revisions are those of a checkout of git")
    rooms = run("size.py").split()
    assert rooms[-2] == "all"
    assert {"_fitting", "kernels", "rows"} < set(rooms)
    lines = run("same_fits.py", "HEAD").splitlines()
    assert len(lines) == 23
    assert np.isfinite([float(line.split()[-1]) for line in lines]).all()


def test_determinism_compares_bits_in_two_processes_and_choices_in_two_orders():
    lines = run("determinism.py", "--sizes", 60, "--orders", 1).splitlines()
    bits, orders = (
        [line.split()[2:] for line in lines[start + 2 : start + 4]]
        for start, line in enumerate(lines)
        if line.startswith(("equal bits", "other orders"))
    )
    assert [line[:4] for line in bits] == [["yes"] * 4] * 2
    assert {*bits[0][4:6]} == {"1,", "2"} or {*bits[0][4:6]} == {"2,", "1"}
    assert [line[:6] for line in orders] == [["1/1"] * 6] * 2
    # Rounding errors of sums in another order.
    assert max(float(line[8]) for line in orders) < 1e-6
