"""Kernel discriminants for scikit-learn users: exact, self-tuning, with honest probabilities."""

__version__ = "0.1.0.dev0"
