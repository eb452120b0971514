"""How much systems can take while objectives hold."""
