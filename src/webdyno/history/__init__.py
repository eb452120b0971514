"""A history of gates: when and by how much what they compared changed."""
