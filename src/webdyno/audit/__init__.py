"""Reads what other people's benchmarks printed, and says what can't be believed, and why."""
