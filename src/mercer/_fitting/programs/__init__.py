"""Fits of any loss with any penalty."""
