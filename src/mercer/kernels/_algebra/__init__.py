"""Kernels made from other kernels."""
