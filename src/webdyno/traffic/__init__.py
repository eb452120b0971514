"""Traffic from a log: what it was like, and a load that is like it."""
