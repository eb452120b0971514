"""Revisions of a Git repository: each in a worktree of its own, built once."""

from webdyno.revisions.builds import Recipe, built
from webdyno.revisions.repository import Repository, Revision

__all__ = ["Recipe", "Repository", "Revision", "built"]
