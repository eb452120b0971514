"""All sites in Django."""
