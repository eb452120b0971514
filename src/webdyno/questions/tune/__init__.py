"""What systems can do when all are tuned with equal effort."""
