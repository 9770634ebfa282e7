"""Kernels from models of how rows arise."""
