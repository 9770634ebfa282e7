"""Directions in feature space."""
