"""Measures what this machine's client can do, against a server that does nothing."""
