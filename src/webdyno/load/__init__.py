"""Load generators: one interface, several programs behind it."""
