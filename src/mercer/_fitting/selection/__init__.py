"""Which kernel, which centers and which alpha: compared by leave-one-out of small fits."""
