"""A gate's answer as one comment of a pull request (GitHub) or a merge request (GitLab)."""
