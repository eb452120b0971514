"""Whether a revision is worse than another one by more than is tolerated."""
