"""Revisions of a Git repository: each in a worktree of its own, built once."""
