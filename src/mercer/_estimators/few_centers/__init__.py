"""Estimators with few centers."""
