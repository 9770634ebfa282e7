"""How far predictions may be off: intervals, standard deviations, unexplained variance."""
