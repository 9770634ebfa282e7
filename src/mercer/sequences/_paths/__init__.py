"""Paths through the states of words."""
