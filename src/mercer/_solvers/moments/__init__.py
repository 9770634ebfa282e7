"""Fits with m centers, from sums over rows."""
