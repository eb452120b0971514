"""Who of three systems or more comes first."""
