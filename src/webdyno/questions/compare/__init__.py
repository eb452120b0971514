"""Which of some systems is better."""
