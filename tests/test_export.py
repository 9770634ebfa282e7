"""Models as source code give what the models give."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import KernelRidgeRegressor, SparseFisherClassifier, SparseKernelRegressor
from mercer.datasets import make_banana, make_sinc
from mercer.errors import KernelError
from mercer.export import to_c, to_python
from mercer.kernels import RBF, InverseMultiquadric, Laplacian, Linear, Matern, Polynomial, Wendland

KERNELS = [
    RBF(gamma=1.0),
    RBF(gamma=[1.0, 0.3]),
    Laplacian(gamma=[0.5, 0.2]),
    Matern(0.5, gamma=0.5),
    Matern(1.5, gamma=0.5),
    Matern(2.5, gamma=0.5),
    Wendland(0, gamma=0.05, dimension=2),
    Wendland(1, gamma=0.05, dimension=2),
    Wendland(2, gamma=0.05, dimension=2),
    Polynomial(degree=3, gamma=0.5),
    Linear(),
]
BANANA = make_banana(150, random_state=0)


def three_classes():
    X, y = BANANA
    return X, np.where(X[:, 0] > 1.0, "c", np.where(y > 0, "b", "a"))


MODELS = [
    *[SparseFisherClassifier(kernel, max_centers=10).fit(*BANANA) for kernel in KERNELS],
    SparseFisherClassifier(RBF(gamma=1.0), max_centers=12, widths=[0.2, 3.0]).fit(*BANANA),
    SparseFisherClassifier(RBF(gamma=1.0), max_centers=12, calibration="gaussian").fit(*three_classes()),
    SparseFisherClassifier(RBF(gamma=1.0), max_centers=9, shared=False, priors=[0.5, 0.2, 0.3]).fit(
        *three_classes()
    ),
    SparseKernelRegressor(RBF(gamma=1.0), max_centers=10).fit(BANANA[0], BANANA[0][:, 0] ** 2),
    KernelRidgeRegressor(RBF(gamma=1.0)).fit(BANANA[0], BANANA[0]),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: " ".join(repr(model).split()))


def compiled(source, folder):
    """The functions of a header, compiled without a warning into a library."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not here to compile with")
    text = source.replace("static void", "void").replace("static int", "int")
    (folder / "model.c").write_text(text)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]
    command = ["gcc", *flags, "-o", folder / "model.so", folder / "model.c", "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(folder / "model.so"))


def called(function, X, q):
    """The q numbers that a C function writes for every row."""
    out, pointer = np.empty((len(X), q)), ctypes.POINTER(ctypes.c_double)
    for x, f in zip(np.ascontiguousarray(X), out):
        function(x.ctypes.data_as(pointer), f.ctypes.data_as(pointer))
    return out


@every_model
def test_compiled_code_gives_what_the_model_gives(model, tmp_path):
    X, library = BANANA[0][:40], compiled(to_c(model), tmp_path)
    if not hasattr(model, "classes_"):
        expected = model.predict(X).reshape(40, -1)
        assert_allclose(called(library.model_outputs, X, expected.shape[1]), expected, rtol=1e-9, atol=1e-9)
        return
    P = model.predict_proba(X)
    assert_allclose(called(library.model_probabilities, X, P.shape[1]), P, rtol=1e-7, atol=1e-12)
    pointer = ctypes.POINTER(ctypes.c_double)
    labels = [library.model_predict(x.ctypes.data_as(pointer)) for x in np.ascontiguousarray(X)]
    assert_array_equal(model.classes_[labels], model.predict(X))


@every_model
def test_plain_python_gives_what_the_model_gives(model):
    source = to_python(model)
    assert "numpy" not in source
    module = {}
    exec(compile(source, "model.py", "exec"), module)
    X = BANANA[0][:40]
    if not hasattr(model, "classes_"):
        expected = model.predict(X).reshape(40, -1)
        assert_allclose([module["outputs"](x) for x in X.tolist()], expected, rtol=1e-9, atol=1e-9)
        return
    assert_allclose(
        [module["probabilities"](x) for x in X.tolist()], model.predict_proba(X), rtol=1e-7, atol=1e-12
    )
    assert_array_equal([module["predict"](x) for x in X.tolist()], model.predict(X))


def test_isotonic_probabilities_are_refused():
    model = SparseFisherClassifier(RBF(gamma=1.0), calibration="isotonic", max_centers=5).fit(*BANANA)
    with pytest.raises(ValueError, match="isotonic"):
        to_c(model)


def test_other_kernels_are_refused_by_name():
    model = SparseKernelRegressor(InverseMultiquadric(gamma=1.0), max_centers=3).fit(
        *make_sinc(30, random_state=0)
    )
    with pytest.raises(KernelError, match="InverseMultiquadric"):
        to_python(model)
