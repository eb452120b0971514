"""Revisions of a Git repository: each in a worktree of its own, built once."""

from webdyno.revisions.builds import Recipe, built
from webdyno.revisions.repository import Repository, Revision, nothing_to_measure

__all__ = ["Recipe", "Repository", "Revision", "built", "nothing_to_measure"]
