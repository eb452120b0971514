"""A gate's answer as one comment of a pull request (GitHub) or a merge request (GitLab)."""

from webdyno.forge.comment import post_comment

__all__ = ["post_comment"]
