"""How long slots, warm-ups and long looks are: pure functions of what was seen so far."""
