"""The kernel Fisher discriminant and kernel ridge regression."""
