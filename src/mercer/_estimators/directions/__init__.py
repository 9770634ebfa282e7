"""Estimators of directions in feature space."""
