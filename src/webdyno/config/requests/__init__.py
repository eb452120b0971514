"""Requests as people have them at hand: tables, curl, .http files, a browser's recording."""
