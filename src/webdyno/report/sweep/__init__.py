"""The report of an experiment with factors: the answers at its points beside each other."""
