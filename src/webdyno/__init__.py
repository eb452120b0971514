"""webdyno: a dynamometer for web stacks."""
