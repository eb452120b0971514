"""Runs of one experiment on several machines: whether a verdict holds for more than one of them."""
