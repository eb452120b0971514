"""Nobody learns the token who didn't have it, whatever he asks for."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from e2e.commands import WEBDYNO, environment
from ordinary_user import NOBODY
from report import comparisons
from variants import further
from webdyno.interfaces.ui.guard import Addresses

ODD_NAMES = ("x/y", "none", "kept", "..%2f..", "%00", "kept%2F..%2Fkept", "x" * 300)
METHODS = ("GET", "POST", *map(further, ("HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW")))
PATHS = (
    *("", "new", "begin", "stop", "compare?run=a&run=b", "style.css", "static/page.js"),
    *(f"{kind}/kept" for kind in ("verdict", "live", "events", "export/csv", "export/no")),
    *(
        "favicon.ico",
        "robots.txt",
        "openapi.json",
        "%2e%2e/",
        "//",
        "report",
        "report/",
        "report/x",
    ),
)


class Page(NamedTuple):
    """A server of pages, as a real process."""

    origin: str
    token: str
    folder: Path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One that shows a run, and one that can't be judged."""
    folder = tmp_path_factory.mktemp("served")
    comparisons.decided().stored(folder / "runs/kept")
    comparisons.decided().stored(folder / "runs/broken")
    (folder / "runs/broken/run.json").write_text("{}")
    with subprocess.Popen(
        [WEBDYNO, "ui"], cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        origin, token, _ = process.stdout.readline().strip().rsplit("/", 2)
        yield Page(origin, token, folder)
        process.terminate()


SEPARATOR = "=====next====="


def answers(page: Page, paths: Sequence[str], *words: str) -> list[str]:
    """Ask as a user who didn't start it, where there is one; give heads and bodies."""
    become = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    curl = ("curl", "-s", "-i", "--path-as-is", "--max-time", "20", "-w", SEPARATOR, *words)
    done = subprocess.run(
        [*(become if os.geteuid() == 0 else ()), *curl, "--config", "-"],
        input="".join(f'url = "{page.origin}/{path}"\n' for path in paths).encode(),
        cwd="/",
        capture_output=True,
        check=False,
    )
    return done.stdout.decode(errors="replace").split(SEPARATOR)[:-1]


@pytest.mark.parametrize("method", METHODS)
def test_no_page_without_the_token_holds_it(page: Page, method: str) -> None:
    sealed = Addresses(page.token).report
    # Whoever was given one report's address may open that one.
    given = [sealed(name).removeprefix("/") for name in ("kept", "none", "broken", "..")]
    reports = [f"report/{seal}/{name}" for seal in ("x", "") for name in ODD_NAMES]
    asked = [*given, *PATHS, *reports, *(f"{page.token[:-1]}/{path}" for path in PATHS)]
    how = ["--head"] if method == "HEAD" else ["-X", method]
    statuses = set()
    for headers in ([], ["-H", f"Origin: {page.origin}"], ["-H", "Host: evil.example"]):
        said = answers(page, asked, *how, *headers)
        assert len(said) == len(asked)
        for path, answer in zip(asked, said, strict=True):
            assert answer.startswith("HTTP/1.1 "), path
            assert page.token not in answer, path
            assert path == given[0] or "href" not in answer, path
            statuses.add(answer.split()[1])
    assert statuses >= {"400", "403"}
    assert ("200" in statuses) == (method in {"GET", "HEAD"})


FORM = "stack=rev:main&baseline=nginx"


def test_a_stranger_begins_nothing(page: Page) -> None:
    tokens = ("", "report", "report/x", page.token[:-1])
    words = ("-X", "POST", "-H", f"Origin: {page.origin}", "-d", FORM)
    for answer in answers(page, [f"{token}/begin" for token in tokens], *words):
        assert answer.split()[1] in {"307", "403", "404", "405"}
    assert not [*(page.folder / "runs").glob(".*.log")]


def test_without_a_terminal_a_page_begins_no_build(page: Page) -> None:
    words = ("-X", "POST", "-H", f"Origin: {page.origin}", "-d", FORM)
    (said,) = answers(page, [f"{page.token}/begin"], *words)
    assert said.split()[1] == "400"
    assert "takes a yes on the terminal" in said
    assert not [*(page.folder / "runs").glob(".*.log")]
