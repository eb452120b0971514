"""`image:NAME` and Compose files: containers that serve HTTP."""
