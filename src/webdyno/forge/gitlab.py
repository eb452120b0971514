"""Merge requests on GitLab, by https://docs.gitlab.com/api/notes/."""

from collections.abc import Mapping
from dataclasses import dataclass

from webdyno.forge.api import Api, PostedComment

TOKEN = "WEBDYNO_GITLAB_TOKEN"  # noqa: S105 (a variable's name)


def gitlab_discussion(environment: Mapping[str, str]) -> "MergeRequest | str":
    """Give the merge request of a job; or say why none is commented."""
    number = environment.get("CI_MERGE_REQUEST_IID", "")
    if not number:
        return "this pipeline has no merge request"
    token = environment.get(TOKEN, "")
    if not token:
        return f"{TOKEN} isn't set (a project access token with the scope `api`)"
    api = Api(environment["CI_API_V4_URL"], {"PRIVATE-TOKEN": token}, TOKEN)
    where = f"/projects/{environment['CI_PROJECT_ID']}/merge_requests/{number}/notes"
    page = f"{environment.get('CI_PROJECT_URL', '')}/-/merge_requests/{number}"
    own = int(api.call("GET", "/user")["id"])
    return MergeRequest(api, where, page, own, environment.get("CI_JOB_URL", ""))


@dataclass(frozen=True)
class MergeRequest:
    """A merge request's notes."""

    api: Api
    where: str
    page: str
    own: int
    """The token's user."""
    job_page: str

    def own_comment(self, marker: str) -> PostedComment | None:
        """Find an earlier note by the same user."""
        for page in self.api.pages(self.where):
            if page["author"]["id"] == self.own and page["body"].startswith(marker):
                return PostedComment(page["id"], self._address(page["id"]))
        return None

    def add(self, body: str) -> str:
        """Post a note; give its address."""
        return self._address(self.api.call("POST", self.where, {"body": body})["id"])

    def rewrite(self, earlier: PostedComment, body: str) -> str:
        """Replace a note; give its address."""
        self.api.call("PUT", f"{self.where}/{earlier.number}", {"body": body})
        return earlier.page

    def _address(self, number: int) -> str:
        return f"{self.page}#note_{number}"
