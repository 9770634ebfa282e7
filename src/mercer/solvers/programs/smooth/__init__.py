"""Solvers for smooth losses."""
