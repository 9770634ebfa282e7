"""Directions in feature space: discriminants, ratios of quadratic forms, canonical correlations."""
