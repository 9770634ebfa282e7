"""Selection of centers (Nyström landmarks): random, clusters, pivots, by the targets, or given."""

from mercer.centers._base import CandidateRows, Centers, CenterSelector
from mercer.centers._forward import ForwardSelection
from mercer.centers._given import Given
from mercer.centers._kmeans import KMeans
from mercer.centers._leverage import Leverage
from mercer.centers._path import CenterPath
from mercer.centers._resolve import as_selector
from mercer.centers._rpcholesky import RPCholesky
from mercer.centers._uniform import Uniform

__all__ = [
    "CandidateRows",
    "CenterPath",
    "CenterSelector",
    "Centers",
    "ForwardSelection",
    "Given",
    "KMeans",
    "Leverage",
    "RPCholesky",
    "Uniform",
    "as_selector",
]
