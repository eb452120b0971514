"""Reads counters of the servers and of the host at a slot's edges."""
