"""Renders, starts, waits for and stops stacks; `starting.py` has a start from first to last."""
