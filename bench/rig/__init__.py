"""What the benchmark scripts share: pinned programs, a private nginx, peers, computed truth."""
