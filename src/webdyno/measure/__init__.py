"""Runs an experiment: round after round into the run's folder, until the stop rule holds.

`session` begins or resumes a run and lets its points take turns; `point` is what every round at one
of them works with; `round` restarts all variants and gives them their slots.
"""
