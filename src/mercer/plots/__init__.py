"""Pictures of fitted models: Display classes as in scikit-learn; matplotlib is installed by ``mercer[plots]``."""

from mercer.plots.leave_one_out import LeaveOneOutDisplay
from mercer.plots.path import LooPathDisplay
from mercer.plots.projection import DiscriminantDisplay
from mercer.plots.relevance import RelevanceDisplay

__all__ = ["DiscriminantDisplay", "LeaveOneOutDisplay", "LooPathDisplay", "RelevanceDisplay"]
