"""Runs an experiment: block after block into the run's folder, until the stop rule holds.

`session` begins or resumes a run and lets its points take turns; `point` is what every block at one
of them works with; `block` is one fresh start of all arms, from top to bottom.
"""
