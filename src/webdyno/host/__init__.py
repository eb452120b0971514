"""Where things run: the machine's CPUs, its processes, what keeps them apart and ends them."""
