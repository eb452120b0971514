"""The settings of each question that an experiment can ask: its keys, and what goes with them."""
