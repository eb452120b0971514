"""`url:` names another machine only for whoever types that it may be loaded, each time."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

from builders import SimulatedVariant, simulated_run
from e2e.commands import webdyno_here
from e2e.own import make_repository
from e2e.test_mcp import with_client
from interfaces.cli.elsewhere import kept_run, project, resolved
from webdyno.config import Catalogue
from webdyno.core.errors import Exit, UserError
from webdyno.core.service import Own
from webdyno.host.this_machine import Testbed
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.interfaces.ui.app import make_app
from webdyno.interfaces.ui.runs import Runs
from webdyno.interfaces.ui.starting import Starter
from webdyno.launch.dispatch import begin_folder
from webdyno.servers.starting import open_stack

if TYPE_CHECKING:  # it takes a while to import
    from mcp.client import Client

CALLER = at_terminal(RunFlags())
ELSEWHERE, HERE = "url:http://198.51.100.1:8001", "url:http://127.0.0.1:8002"
EXPERIMENT = f"""
title = "Mine"
question = "Which?"
site = "own"
load.paths = ["/"]
variants.a.stack = "{ELSEWHERE}"
variants.b.stack = "{HERE}"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return project(tmp_path, {"mine.toml": EXPERIMENT}, monkeypatch)


@pytest.mark.parametrize(
    "words",
    [
        ("compare", ELSEWHERE, HERE, "--loads-other-machines"),
        ("capacity", ELSEWHERE),
        ("up", ELSEWHERE),
        ("run", "mine.toml"),
    ],
)
def test_it_is_refused_whatever_begins_it(folder: Path, words: tuple[str, ...]) -> None:
    done = webdyno_here(*words, "--yes", folder=folder)
    assert done.returncode == Exit.USER_ERROR
    assert f"  {ELSEWHERE} (198.51.100.1:8001)\n" in done.stderr
    assert "add --target-is-mine, which --yes doesn't stand for" in done.stderr


def test_a_catalog_cannot_vouch(folder: Path) -> None:
    service, stack = folder / "cat/services/away", folder / "cat/stacks/away"
    for made in (service, stack):
        made.mkdir(parents=True)
    (service / "service.toml").write_text(
        'title = "Away"\nprotocol = "http"\n'
        'own = { written = "away", port = 8001, listens_at = "198.51.100.1" }\n'
    )
    (stack / "stack.toml").write_text(
        'title = "Away"\nserves = ["static"]\nfront = "web"\nservices.web.service = "away"\n'
    )
    done = webdyno_here("compare", "away", "nginx", "--catalog=cat", "--yes", folder=folder)
    assert done.returncode == Exit.USER_ERROR, done.stderr
    assert "  away (198.51.100.1:8001)\n" in done.stderr


def test_a_foreign_webdyno_toml_cannot_vouch(folder: Path) -> None:
    (folder / "nginx.conf").write_text(
        "server { listen 80; location / { proxy_pass http://app:9000; } }"
    )
    (folder / "webdyno.toml").write_text(
        '[app]\nconf = "nginx.conf"\nbackends.app = "198.51.100.1:8001"\n'
    )
    make_repository(folder)
    done = webdyno_here("compare", "rev:.", "rev:.", "--yes", folder=folder)
    assert done.returncode == Exit.USER_ERROR, done.stderr
    assert "  url:http://198.51.100.1:8001 (198.51.100.1:8001)\n" in done.stderr


def test_a_page_cannot_vouch(folder: Path) -> None:
    root, token, origin = folder / "runs", "known", "http://127.0.0.1:8080"
    starter = Starter(root)
    made = make_app(Runs(root), Catalogue.load(), starter, token, 8080, str)
    asked = {"stack": ELSEWHERE, "baseline": HERE, "target_is_mine": "1", "--target-is-mine": "1"}
    with TestClient(made, base_url=f"{origin}/{token}") as client:
        client.post("/begin", headers={"origin": origin}, data=asked, follow_redirects=False)
        begun = starter.last
        assert begun
        assert begun.process.wait(timeout=60) == Exit.USER_ERROR
    assert f"  {ELSEWHERE} (198.51.100.1:8001)\n" in begun.said


def test_a_tool_for_agents_cannot_vouch(folder: Path) -> None:
    async def use(client: "Client") -> None:
        asked = {"system": ELSEWHERE, "baseline": HERE, "target_is_mine": True}
        refused = await client.call_tool("compare", asked)
        assert refused.is_error
        said = " ".join(getattr(it, "text", "") for it in refused.content)
        assert f"  {ELSEWHERE} (198.51.100.1:8001)\n" in said
        settings = {"target_is_mine": True}
        refused = await client.call_tool("compare", {**asked, "settings": settings})
        assert refused.is_error

    with_client(folder, use)


def test_what_nobody_was_asked_about_is_not_loaded(folder: Path) -> None:
    experiment, catalogue = resolved(folder, CALLER)
    stack = catalogue.stack(experiment.variants["a"].stack)
    kept = folder / "kept"
    with (
        pytest.raises(UserError, match=r"nobody vouches for 198\.51\.100\.1:8001"),
        open_stack(stack, {}, catalogue.site("own"), folder=kept, testbed=Testbed()),
    ):
        pass
    assert not kept.exists()


@pytest.mark.parametrize("words", [("resume", "run"), ("run", "run/experiment.toml")])
def test_neither_a_run_nor_its_catalogue_vouches(folder: Path, words: tuple[str, ...]) -> None:
    kept_run(folder, CALLER)
    kept = ("--catalog", "run/catalog") if words[0] == "run" else ()
    done = webdyno_here(*words, *kept, "--yes", folder=folder)
    assert done.returncode == Exit.USER_ERROR
    assert f"  {ELSEWHERE} (198.51.100.1:8001)\n" in done.stderr


@pytest.mark.parametrize("key", ["variants.a.target_is_mine", "target_is_mine"])
def test_no_file_can_say_so(folder: Path, key: str) -> None:
    with (folder / "mine.toml").open("a") as file:
        file.write(f"{key} = true\n")
    with pytest.raises(UserError, match="target_is_mine"):
        resolved(folder, CALLER)


def test_many_hosts_never_load_another_machine(folder: Path) -> None:
    head = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=1).head
    vouched = at_terminal(RunFlags(target_is_mine=True))
    with pytest.raises(UserError, match="another machine than this one"):
        begin_folder(folder / "fleet/fleet.json", head, *resolved(folder, CALLER), vouched)
    assert not (folder / "fleet").exists()


def test_a_kept_address_is_no_name_that_could_lead_elsewhere_later() -> None:
    with pytest.raises(ValueError, match="does not appear to be an IPv4 or IPv6 address"):
        Own(written="url:x", port=80, listens_at="localhost.example")
    assert Own(written="url:x", port=80, listens_at="::1").elsewhere is None
    assert Own(written="url:x", port=80, listens_at="2001:db8::1").elsewhere == "[2001:db8::1]:80"
