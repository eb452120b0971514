"""Events of GitHub as its documentation describes them, cut to what says where they come from.

https://docs.github.com/webhooks/webhook-events-and-payloads
"""

from typing import Any

REPOSITORY = "someone/shop"


def pull_request(number: int = 12, source: str | None = REPOSITORY) -> dict[str, Any]:
    """A pull request was opened or pushed to; `source` is None where its fork is gone."""
    repo = None if source is None else {"full_name": source}
    return {
        "action": "synchronize",
        "number": number,
        "pull_request": {"number": number, "head": {"sha": "a" * 40, "repo": repo}},
    }


def push() -> dict[str, Any]:
    """Something was pushed to a branch."""
    return {"ref": "refs/heads/main", "after": "a" * 40, "repository": {"default_branch": "main"}}


def workflow_run(owner: str = "stranger", sha: str = "a" * 40) -> dict[str, Any]:
    """A workflow of a fork's pull request ended; GitHub leaves `pull_requests` empty for forks."""
    return {
        "action": "completed",
        "workflow_run": {
            "id": 4711,
            "event": "pull_request",
            "head_sha": sha,
            "head_branch": "faster",
            "head_repository": {"full_name": f"{owner}/shop", "owner": {"login": owner}},
            "pull_requests": [],
        },
    }
