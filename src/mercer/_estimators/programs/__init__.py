"""Estimators that solve a convex program."""
