"""Fits with few centers, selected one after another."""
