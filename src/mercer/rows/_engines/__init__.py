"""Rows that Dask, Ray or Spark hold."""
