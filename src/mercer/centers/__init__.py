"""Selection of centers (Nyström landmarks): random, clusters, pivots, by the targets, or given."""

from mercer.centers.base import CandidateRows, Centers, CenterSelector
from mercer.centers.forward import ForwardSelection
from mercer.centers.given import Given
from mercer.centers.kmeans import KMeans
from mercer.centers.leverage import Leverage
from mercer.centers.path import CenterPath
from mercer.centers.resolve import as_selector
from mercer.centers.rpcholesky import RPCholesky
from mercer.centers.uniform import Uniform

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
