"""Pull requests on GitHub, found from the event that began the job.

https://docs.github.com/actions/reference/events-that-trigger-workflows has the events. A job of
`pull_request` from a fork may not write; `workflow_run`, which follows it in the repository itself,
may: https://securitylab.github.com/resources/github-actions-preventing-pwn-requests/.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from webdyno.forge.api import Api, PostedComment
from webdyno.model.errors import UserError
from webdyno.model.files import read_named

MOST_EVENT_BYTES = 16 * 2**20
COLLEAGUES = {"OWNER", "MEMBER", "COLLABORATOR"}


def github_discussion(environment: Mapping[str, str]) -> "PullRequest | str":
    """Give the pull request of a job; or say why none is commented."""
    event = _event(environment)
    repository = environment.get("GITHUB_REPOSITORY", "")
    if "workflow_run" not in event:
        pull = event.get("pull_request")
        if not isinstance(pull, dict):
            return f"the event {environment.get('GITHUB_EVENT_NAME', '')!r} has no pull request"
        if _source(pull) != repository and environment.get("GITHUB_EVENT_NAME") == "pull_request":
            return "a pull request from a fork may not write; let workflow_run post it"
    token = environment.get("GITHUB_TOKEN", "")
    if not token:
        raise UserError("--comment: GITHUB_TOKEN isn't set; give it to this step by `env:`")
    api = Api(
        environment.get("GITHUB_API_URL", "https://api.github.com"),
        {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "Authorization": f"Bearer {token}",
        },
        "GITHUB_TOKEN (permissions: pull-requests: write)",
    )
    page = f"{environment.get('GITHUB_SERVER_URL', 'https://github.com')}/{repository}/actions/runs"
    if "workflow_run" not in event:
        page = f"{page}/{environment.get('GITHUB_RUN_ID', '')}"
        return PullRequest(api, repository, int(event["pull_request"]["number"]), page)
    measured = event["workflow_run"]
    number = _number_of(api, repository, measured)
    if number is None:
        return f"no open pull request has {measured['head_sha'][:12]} as its newest commit"
    return PullRequest(api, repository, number, f"{page}/{measured['id']}")


@dataclass(frozen=True)
class PullRequest:
    """A pull request's comments."""

    api: Api
    repository: str
    number: int
    job_page: str

    def own_comment(self, marker: str) -> PostedComment | None:
        """Find an earlier comment of an app's, or of somebody who may write here."""
        for page in self.api.pages(f"/repos/{self.repository}/issues/{self.number}/comments"):
            trusted = page["user"]["type"] == "Bot" or page.get("author_association") in COLLEAGUES
            if trusted and page["body"].startswith(marker):
                return PostedComment(page["id"], page["html_url"])
        return None

    def add(self, body: str) -> str:
        """Post a comment; give its address."""
        where = f"/repos/{self.repository}/issues/{self.number}/comments"
        return str(self.api.call("POST", where, {"body": body})["html_url"])

    def rewrite(self, earlier: PostedComment, body: str) -> str:
        """Replace a comment; give its address."""
        where = f"/repos/{self.repository}/issues/comments/{earlier.number}"
        return str(self.api.call("PATCH", where, {"body": body})["html_url"])


def _number_of(api: Api, repository: str, measured: Mapping[str, Any]) -> int | None:
    """Find the open pull request that a workflow measured: GitHub doesn't name those of forks.

    By its newest commit, which the event names: what the fork wrote can't choose another one.
    """
    owner = measured["head_repository"]["owner"]["login"]
    head = quote(f"{owner}:{measured['head_branch']}", safe="")
    for pull in api.pages(f"/repos/{repository}/pulls?state=open&head={head}"):
        if pull["head"]["sha"] == measured["head_sha"]:
            return int(pull["number"])
    return None


def _event(environment: Mapping[str, str]) -> dict[str, Any]:
    path = environment.get("GITHUB_EVENT_PATH", "")
    if not path:
        raise UserError("--comment: GITHUB_EVENT_PATH isn't set, as GitHub Actions would")
    try:
        event = json.loads(read_named(Path(path), MOST_EVENT_BYTES))
    except ValueError as error:
        raise UserError(f"{path}: is no event of GitHub's: {error}") from None
    if not isinstance(event, dict):
        raise UserError(f"{path}: is no event of GitHub's")
    return event


def _source(pull: Mapping[str, Any]) -> str:
    """Name the repository that a pull request comes from; empty where that is gone."""
    repository = pull["head"].get("repo") or {}
    return str(repository.get("full_name", ""))
