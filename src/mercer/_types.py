"""Names of array types used in signatures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Floating-point numbers for computations.
Array = NDArray[np.float64]
# Positions of rows, classes, centers.
Indices = NDArray[np.intp]
# Numbers in the precision of the rows: float32 or float64.
Floats = NDArray[np.floating[Any]]
