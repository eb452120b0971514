"""Runs an experiment: block after block into the run's folder, until the stop rule holds."""
