"""Random samples of rows, and what weights mean."""
