"""Pictures of fitted models: Display classes as in scikit-learn; matplotlib is installed by ``mercer[plots]``."""

from mercer.plots._contributions import ContributionsDisplay
from mercer.plots._leave_one_out import LeaveOneOutDisplay
from mercer.plots._path import LooPathDisplay
from mercer.plots._projection import DiscriminantDisplay
from mercer.plots._relevance import RelevanceDisplay

__all__ = [
    "ContributionsDisplay",
    "DiscriminantDisplay",
    "LeaveOneOutDisplay",
    "LooPathDisplay",
    "RelevanceDisplay",
]
