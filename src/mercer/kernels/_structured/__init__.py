"""Kernels on strings, texts, sets and trees."""
