"""An answer as one comment of a pull request, which a later answer rewrites."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from pydantic import TypeAdapter, ValidationError

from webdyno.config.reading import first_fault
from webdyno.core.base import Foreign
from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import read_named
from webdyno.core.hiding import keep_secret
from webdyno.core.registry import COMMENT, import_part

ANSWERS_WITHIN_S = 30.0
PER_PAGE, MOST_PAGES = 100, 30
MOST_ANSWER_BYTES = 16 * 2**20
_ENTRIES: TypeAdapter[list[dict[str, Any]]] = TypeAdapter(list[dict[str, Any]])


@dataclass(frozen=True)
class Api:
    """A forge's API, as one job may use it."""

    root: str
    headers: Mapping[str, str]
    token_name: str
    """Where the token came from, for messages."""

    def call(self, method: str, path: str, sent: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401 (JSON)
        """Return its answer; raise OperationError where it refuses or isn't there."""
        what = f"{method} {self.root}{path}"
        request = Request(  # noqa: S310 (the job's own API)
            f"{self.root}{path}",
            method=method,
            data=None if sent is None else json.dumps(sent).encode(),
            headers={"Content-Type": "application/json", "User-Agent": "webdyno", **self.headers},
        )
        try:
            with urlopen(request, timeout=ANSWERS_WITHIN_S) as answer:  # noqa: S310
                return json.loads(answer.read(MOST_ANSWER_BYTES))
        except HTTPError as error:
            raise OperationError(f"{what}: {self._refusal(error)}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise OperationError(f"{what}: {getattr(error, 'reason', error)}") from None

    def pages(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Return all entries of a list, page by page."""
        joined = "&" if "?" in path else "?"
        for page in range(1, MOST_PAGES + 1):
            answer = self.call("GET", f"{path}{joined}per_page={PER_PAGE}&page={page}")
            try:
                entries = _ENTRIES.validate_python(answer)
            except ValidationError:
                raise OperationError(
                    f"GET {self.root}{path}: answers no list, as a forge would"
                ) from None
            yield from entries
            if len(entries) < PER_PAGE:
                return

    def _refusal(self, error: HTTPError) -> str:
        with error:
            try:
                said = json.loads(error.read(MOST_ANSWER_BYTES))["message"]
            except (OSError, ValueError, KeyError, TypeError):
                said = error.reason
        if error.code in {401, 403, 404}:
            return f"{error.code} {said}; may {self.token_name} write comments there?"
        return f"{error.code} {said}"


class PostedComment(NamedTuple):
    """A comment that is there already."""

    number: int
    page: str


MOST_EVENT_BYTES = 16 * 2**20
COLLEAGUES = {"OWNER", "MEMBER", "COLLABORATOR"}


def github_discussion(environment: Mapping[str, str]) -> "PullRequest | str":
    """Return the pull request of a job, from the event that began it; or why none is commented.

    https://docs.github.com/actions/reference/events-that-trigger-workflows has the events. A job of
    `pull_request` from a fork may not write; `workflow_run`, which follows it in the repository
    itself, may: https://securitylab.github.com/resources/github-actions-preventing-pwn-requests/.
    """
    event = _event(environment)
    repository, name = (
        environment.get(f"GITHUB_{key}", "") for key in ("REPOSITORY", "EVENT_NAME")
    )
    measured = event.workflow_run or event.pull_request
    if measured is None:
        return f"the event {name!r} has no pull request"
    if isinstance(measured, _Pull) and measured.repository != repository and name == "pull_request":
        return "a pull request from a fork may not write; let workflow_run post it"
    token = environment.get("GITHUB_TOKEN", "")
    if not token:
        raise UserError("--comment: GITHUB_TOKEN isn't set; give it to this step by `env:`")
    keep_secret([token])
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
    if isinstance(measured, _Pull):
        page = f"{page}/{environment.get('GITHUB_RUN_ID', '')}"
        return PullRequest(api, repository, measured.number, page)
    number = _number_of(api, repository, measured)
    if number is None:
        return f"no open pull request has {measured.head_sha[:12]} as its newest commit"
    return PullRequest(api, repository, number, f"{page}/{measured.id}")


@dataclass(frozen=True)
class PullRequest:
    """A pull request's comments."""

    api: Api
    repository: str
    number: int
    job_page: str
    """Where the job of this measurement is shown."""

    def own_comment(self, marker: str) -> PostedComment | None:
        """Find an earlier comment of an app's, or of somebody who may write here."""
        for page in self.api.pages(f"/repos/{self.repository}/issues/{self.number}/comments"):
            is_app = (page.get("user") or {}).get("type") == "Bot"  # whose account is gone: null
            trusted = is_app or page.get("author_association") in COLLEAGUES
            if trusted and (page.get("body") or "").startswith(marker):
                return PostedComment(page["id"], page["html_url"])
        return None

    def add(self, body: str) -> str:
        """Post a comment; return its address."""
        where = f"/repos/{self.repository}/issues/{self.number}/comments"
        return str(self.api.call("POST", where, {"body": body})["html_url"])

    def rewrite(self, earlier: PostedComment, body: str) -> str:
        """Replace a comment; return its address."""
        where = f"/repos/{self.repository}/issues/comments/{earlier.number}"
        return str(self.api.call("PATCH", where, {"body": body})["html_url"])


class _Owner(Foreign):
    login: str


class _Repository(Foreign):
    full_name: str = ""
    owner: _Owner | None = None


class _Head(Foreign):
    repo: _Repository | None = None


class _Pull(Foreign):
    number: int
    head: _Head

    @property
    def repository(self) -> str:
        """The repository that it comes from; empty where that is gone."""
        return self.head.repo.full_name if self.head.repo else ""


class _Measured(Foreign):
    """A run of a workflow."""

    id: int
    head_sha: str
    head_branch: str | None = None
    head_repository: _Repository | None = None
    """None where that is gone."""


class _Event(Foreign):
    pull_request: _Pull | None = None
    workflow_run: _Measured | None = None


def _number_of(api: Api, repository: str, measured: _Measured) -> int | None:
    """Find the open pull request that a workflow measured: GitHub doesn't name those of forks.

    By its newest commit, which the event names: what the fork wrote can't choose another one.
    """
    source = measured.head_repository
    if source is None or source.owner is None:
        return None
    head = quote(f"{source.owner.login}:{measured.head_branch}", safe="")
    for pull in api.pages(f"/repos/{repository}/pulls?state=open&head={head}"):
        if pull["head"]["sha"] == measured.head_sha:
            return int(pull["number"])
    return None


def _event(environment: Mapping[str, str]) -> _Event:
    path = environment.get("GITHUB_EVENT_PATH", "")
    if not path:
        raise UserError("--comment: GITHUB_EVENT_PATH isn't set, as GitHub Actions would")
    try:
        return _Event.model_validate_json(read_named(Path(path), MOST_EVENT_BYTES))
    except ValidationError as error:
        raise UserError(f"{path}: is no event of GitHub's: {first_fault(error)}") from None


GITLAB_TOKEN = "WEBDYNO_GITLAB_TOKEN"  # noqa: S105 (a variable's name)


def gitlab_discussion(environment: Mapping[str, str]) -> "MergeRequest | str":
    """Return the merge request of a job; or why none is commented."""
    number = environment.get("CI_MERGE_REQUEST_IID", "")
    if not number:
        return "this pipeline has no merge request"
    token = environment.get(GITLAB_TOKEN, "")
    if not token:
        return f"{GITLAB_TOKEN} isn't set (a project access token with the scope `api`)"
    keep_secret([token])
    api = Api(environment["CI_API_V4_URL"], {"PRIVATE-TOKEN": token}, GITLAB_TOKEN)
    where = f"/projects/{environment['CI_PROJECT_ID']}/merge_requests/{number}/notes"
    page = f"{environment.get('CI_PROJECT_URL', '')}/-/merge_requests/{number}"
    own = int(api.call("GET", "/user")["id"])
    commit = environment.get("CI_COMMIT_SHA", "")
    return MergeRequest(api, where, page, own, commit, environment.get("CI_JOB_URL", ""))


@dataclass(frozen=True)
class MergeRequest:
    """A merge request's notes: https://docs.gitlab.com/api/notes/."""

    api: Api
    where: str
    page: str
    own: int
    """The token's user."""
    commit: str
    """The pipeline's."""
    job_page: str

    def own_comment(self, marker: str) -> PostedComment | None:
        """Find an earlier note by the same user."""
        for page in self.api.pages(self.where):
            if page["author"]["id"] == self.own and page["body"].startswith(marker):
                return PostedComment(page["id"], self._address(page["id"]))
        return None

    def add(self, body: str) -> str:
        """Post a note; return its address."""
        return self._address(self.api.call("POST", self.where, {"body": body})["id"])

    def rewrite(self, earlier: PostedComment, body: str) -> str:
        """Replace a note; return its address."""
        self.api.call("PUT", f"{self.where}/{earlier.number}", {"body": body})
        return earlier.page

    def _address(self, number: int) -> str:
        return f"{self.page}#note_{number}"


class Comment(Protocol):
    """What a reviewer reads of a run's folder, by the question that was asked."""

    def marker(self, name: str) -> str:
        """Return the comment's first line, which no reader sees, by which it is found again."""

    def body(self, name: str, job_page: str) -> str:
        """Return the rest as Markdown; `job_page` is where the job of its measurement is shown."""

    def is_of(self, commit: str) -> bool:
        """Whether what it says is about that commit, without changes."""


MOST_LETTERS = 60_000
"""GitHub takes 65,536: https://docs.github.com/rest/issues/comments."""


def post_comment(folder: Path, name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Post an answer to the pull request of this CI job, or rewrite what was posted before.

    `name` distinguishes several of one pull request. Return what was done, for people. Raise
    UserError where the folder has nothing to be posted or this is no CI job known here,
    OperationError where the forge refuses.
    """
    comment: Comment = import_part(COMMENT)(folder)
    discussion = _discussion(environment)
    if isinstance(discussion, str):
        return f"no comment: {discussion}"
    if isinstance(discussion, MergeRequest) and not comment.is_of(discussion.commit):
        commit = discussion.commit[:12]
        return (
            f"no comment: {folder} isn't about {commit}, this pipeline's commit: it is of another "
            "one, or of a checkout with changes, which .gitignore may name"
        )
    marker = comment.marker(name)
    body = f"{marker}\n{comment.body(name, discussion.job_page)}"
    if len(body) > MOST_LETTERS:
        # An open <details> would swallow what forges put below the comment.
        body = f"{body[:MOST_LETTERS]}\n\n… cut; the report has all of it.\n\n</details>\n"
    earlier = discussion.own_comment(marker)
    if earlier is None:
        return f"commented: {discussion.add(body)}"
    return f"comment updated: {discussion.rewrite(earlier, body)}"


def _discussion(environment: Mapping[str, str]) -> PullRequest | MergeRequest | str:
    """Return the pull request; or why there is none to comment."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return github_discussion(environment)
    if environment.get("GITLAB_CI") == "true":
        return gitlab_discussion(environment)
    raise UserError(
        "--comment: this is no job of GitHub Actions or GitLab CI; elsewhere post the file gate.md "
        "by your CI's own means"
    )
