"""What to do about a status that wasn't expected: it depends on the status."""

from collections.abc import Collection
from urllib.parse import urlsplit

from webdyno.model.headers import header
from webdyno.model.records import Answer

OK, REDIRECT, BAD_REQUEST, SERVER_ERROR = 200, 300, 400, 500
NOT_ALLOWED = {401, 403}
BEHIND = {502, 503, 504}
NO_SUCH_PAGE = 404
SEE = "See what it sends with `webdyno up` and curl"
LOGS = "its log is in the run's folder"


def leads_to(answer: Answer) -> str:
    """Say where a redirect leads; nothing of other answers."""
    place = _location(answer)
    return f"; it leads to {place!r:.200}" if place else ""


def remedy(answer: Answer, of_all: Collection[int | None]) -> str:
    """Say what to do about an answer; `of_all`: the statuses of all arms to this request."""
    status = answer.status or 0
    itself = f"To measure this answer itself, give the request `status = {status}` in [[requests]]"
    if OK <= status < REDIRECT:
        return f"{itself}, if it is the right one."
    if REDIRECT <= status < BAD_REQUEST:
        return f"{_redirected(answer)} {itself}."
    if status in NOT_ALLOWED:
        return (
            "Send what it wants to see, such as --set 'load.headers.Cookie=${env:COOKIE}' or "
            f"load.headers.Authorization; or name another page by --path. {itself}."
        )
    if status == NO_SUCH_PAGE:
        others = len(set(of_all)) > 1
        have = "that all arms have" if others else "that there is"
        root = " (--root is heeded by conf: alone)" if others else ""
        return f"Name a page {have}, by --path or --site{root}. {itself}."
    if status in BEHIND:
        return (
            "What it passes requests on to doesn't answer, or it takes no more of them: start "
            f"that, and see why; {LOGS}."
        )
    if status >= SERVER_ERROR:
        return f"Its program failed: {LOGS}. {SEE}, and correct it."
    return f"{SEE}, and correct it or the request. {itself}."


def _location(answer: Answer) -> str:
    if not REDIRECT <= (answer.status or 0) < BAD_REQUEST:
        return ""
    return header(dict(answer.headers), "location") or ""


def _redirected(answer: Answer) -> str:
    """Say how to ask for what a redirect leads to."""
    place = urlsplit(_location(answer))
    path = place.path + (f"?{place.query}" if place.query else "")
    steps = []
    if place.scheme == "https" and not answer.tls:
        steps.append("speak TLS: --set load.protocol=h2 (or https)")
    if place.hostname and not _is_local(place.hostname):
        steps.append(f"say which host is asked for: --host {place.hostname}")
    if path and path != answer.path:
        steps.append(f"ask for where it leads: --path {path:.200}")
    if header(dict(answer.headers), "set-cookie"):
        steps.append("send the cookie that it sets: --set 'load.headers.Cookie=${env:COOKIE}'")
    if not steps:
        return "Redirects aren't followed."
    return f"Redirects aren't followed; {'; '.join(steps)}."


def _is_local(host: str) -> bool:
    return host == "localhost" or host.startswith("127.") or host == "::1"
