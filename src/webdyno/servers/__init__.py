"""Renders, starts, waits for and stops stacks."""
