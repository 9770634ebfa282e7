"""From leave-one-out scores to probabilities of classes."""
