"""Kernels that learn from rows with targets before they are compared."""
