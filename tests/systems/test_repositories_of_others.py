"""What somebody else wrote into his repository doesn't decide what we run and read."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from webdyno.core.errors import UserError
from webdyno.host.children import run_program
from webdyno.host.users import owner_of, programs_user
from webdyno.interfaces.cli.flags import OwnFlags
from webdyno.interfaces.cli.serving import up
from webdyno.systems.containers.image import check_containers, refuse_containers_of_others
from webdyno.systems.project import Project
from webdyno.systems.repository import Repository, repository_of
from webdyno.systems.revision import Recipe, build_revision
from webdyno.systems.target import OwnKeys, TargetSpec

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root alone can give files away")
SOMEBODY = 12345


@pytest.fixture
def repository(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(open_folder / "settings"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    top = open_folder / "app"
    subprocess.run(["git", "init", "-q", top], check=True)
    (top / "webdyno.toml").write_text('[app]\nstart = "./server"\n')
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]
    for words in (["add", "."], commit):
        subprocess.run(["git", "-C", top, *words], check=True)
    return top


def give_away(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, SOMEBODY, SOMEBODY)


@pytest.mark.parametrize(
    "opens", [Project.around, repository_of, lambda it: Repository.around(it, "x")]
)
def test_a_repository_of_somebody_else_is_refused(
    repository: Path, monkeypatch: pytest.MonkeyPatch, opens: object
) -> None:
    assert callable(opens)
    opens(repository)
    give_away(repository)
    for folder in (repository, repository / "sub"):
        folder.mkdir(exist_ok=True)
        with pytest.raises(UserError, match=rf"belongs to user {SOMEBODY}.*safe\.directory"):
            opens(folder)
    with monkeypatch.context() as by_sudo:
        by_sudo.setenv("SUDO_UID", str(SOMEBODY))
        opens(repository)
    above = ["git", "config", "--global", "safe.directory", str(repository.parent)]
    subprocess.run(above, check=True)
    with pytest.raises(UserError, match=r"safe\.directory"):  # as of Git: that folder alone
        opens(repository)
    for vouched in ("*", f"{repository.parent}/*", str(repository)):
        words = ["git", "config", "--global", "--replace-all", "safe.directory", vouched]
        subprocess.run(words, check=True)
        opens(repository)
    subprocess.run(["git", "config", "--global", "--add", "safe.directory", ""], check=True)
    with pytest.raises(UserError):
        opens(repository)


def test_its_own_settings_vouch_for_nothing(repository: Path) -> None:
    words: list[str | Path] = ["git", "-C", repository, "config", "safe.directory", "*"]
    subprocess.run(words, check=True)
    give_away(repository)
    with pytest.raises(UserError):
        Project.around(repository)


@pytest.mark.parametrize(
    "named",
    [
        '[[requests]]\npath = "/"\nbody_file = "{}"',
        '[[login]]\npath = "/"\nbody_file = "{}"',
        '[values.u]\nfile = "{}"',
        '[load]\nreplay_file = "{}"',
    ],
)
def test_root_reads_for_him_what_he_may_read(
    repository: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """By sudo in his own repository, where a pull request named the file."""
    secret = repository.parent / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    (repository / "link").symlink_to(secret)
    monkeypatch.setenv("SUDO_UID", str(SOMEBODY))
    for path in (secret, "link"):
        (repository / "webdyno.toml").write_text(named.format(path))
        with pytest.raises(UserError, match=r"webdyno\.toml:\d.* may not read .*secret"):
            Project.around(repository)
    secret.chmod(0o644)
    assert Project.around(repository)


@pytest.mark.parametrize(
    "more", ['[state]\nbefore_round = ["id"]', '[[requests]]\npath = "/"\nbody_file = "b"']
)
def test_of_a_vouched_file_root_runs_and_reads_nothing(repository: Path, more: str) -> None:
    """Who wrote it could exchange what it names, or have commands run as root."""
    (repository / "webdyno.toml").write_text(f"{more}\n")
    (repository / "b").write_text("his own")
    assert Project.around(repository)
    give_away(repository)
    words = ["git", "config", "--global", "safe.directory", "*"]
    subprocess.run(words, check=True)
    with pytest.raises(UserError, match=f"call webdyno as user {SOMEBODY}"):
        Project.around(repository)


def test_no_build_of_his_gets_variables_of_root_s(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs before anybody can be asked."""
    (home := repository.parent / "home").mkdir()
    for folder in (repository, home):
        give_away(folder)
    words = ["git", "config", "--global", "safe.directory", "*"]
    subprocess.run(words, check=True)
    monkeypatch.setattr("webdyno.systems.revision.home_of", lambda _: home)
    monkeypatch.setenv("ROOTS_TOKEN", "abc-root-token")
    its = Repository.around(repository, "here")
    head = its.revision("HEAD", "here")

    def build(**keys: Any) -> Path:  # noqa: ANN401
        recipe = Recipe("touch built", Path(), **{"environment": {}, **keys})
        return build_revision(its, head, recipe, "x", lambda _: None)

    for keys in ({"environment": {"T": "${env:ROOTS_TOKEN}"}}, {"inherited": ["ROOTS_TOKEN"]}):
        with pytest.raises(UserError, match=f"as user {SOMEBODY}, .*of yours: ROOTS_TOKEN;"):
            build(**keys)
    assert not [*home.rglob("built")]
    assert (build(environment={"T": "his own"}) / "built").exists()


def test_up_asks_before_a_program_of_his_gets_variables_of_root_s(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOTS_TOKEN", "abc-root-token")
    give_away(repository)
    for own in (OwnFlags(repository, env=["T=${env:ROOTS_TOKEN}"]), OwnFlags(repository)):
        more = [] if own.env else ["load.headers.X=${env:ROOTS_TOKEN}"]
        with pytest.raises(UserError, match=f"as user {SOMEBODY}, .*ROOTS_TOKEN .*--yes"):
            up("cmd:false", own=own, set_=more)


def test_who_exchanges_a_folder_of_his_stays_whom_programs_run_as(repository: Path) -> None:
    """A link to a folder of root's in its place makes nothing of his root's."""
    give_away(repository)
    user = programs_user(Path("/usr"), Path("/usr/lib"), repository.stat().st_uid)
    assert user is not None
    assert user.uid == SOMEBODY
    spec = TargetSpec("cmd:x", "x", OwnKeys(), repository, "here", print, {}, None, lambda _: None)
    assert spec.service([], {"folder": str(repository)})["own"]["owner"] == SOMEBODY


def test_containers_of_a_revision_reach_no_further_than_it(tmp_path: Path) -> None:
    """However they are begun: `rev:`, or the first try of `webdyno init`."""
    for text in ("compose.yaml", "compose.yaml#web"):
        (tmp_path / "compose.yaml").write_text(
            "services: {web: {image: x, volumes: ['/:/host']}}\n"
        )
        with pytest.raises(UserError, match="wants rights on this machine"):
            check_containers(text, tmp_path, tmp_path, "here")
    with pytest.raises(UserError, match="leads out of the revision"):
        check_containers("..", tmp_path, tmp_path, "here")
    with pytest.raises(UserError, match="leads out of the revision"):
        check_containers("oci-archive:/root/a.tar", tmp_path, tmp_path, "here")
    (tmp_path / "Dockerfile").symlink_to("/etc/shadow")
    with pytest.raises(UserError, match="leads out of the revision, to /etc/shadow"):
        check_containers(".", tmp_path, tmp_path, "here")


def test_a_repository_of_another_user_has_no_containers(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever vouches for it: who starts containers can do what root can."""
    refuse_containers_of_others(Repository.around(repository, "here"), "here")
    give_away(repository)
    subprocess.run(["git", "config", "--global", "safe.directory", "*"], check=True)
    its = Repository.around(repository, "here")
    repository.rename(repository.parent / "away")
    repository.symlink_to("/usr")  # as its build could
    with pytest.raises(UserError, match=f"the repository belongs to user {SOMEBODY}"):
        refuse_containers_of_others(its, "here")
    monkeypatch.setattr(os, "geteuid", lambda: 23456)
    without_root = Repository(repository.parent / "away", None)
    with pytest.raises(UserError, match=f"the repository belongs to user {SOMEBODY}"):
        refuse_containers_of_others(without_root, "here")


def test_a_bare_repository_around_a_folder_is_none(tmp_path: Path) -> None:
    """Anybody could have made /tmp one, whose settings name programs."""
    subprocess.run(["git", "init", "-q", "--bare", tmp_path], check=True)
    (tmp_path / "mine").mkdir()
    with pytest.raises(UserError, match="is in no Git repository"):
        Repository.around(tmp_path / "mine", "here")


def test_a_folder_that_isnt_roots_makes_nothing_roots(repository: Path) -> None:
    """Whatever a catalogue says whose it is."""
    give_away(repository)
    user = programs_user(Path("/usr"), repository, 0)
    assert user is not None
    assert user.uid == SOMEBODY


def test_his_programs_dont_have_our_terminal(tmp_path: Path) -> None:
    """Into which they could type (TIOCSTI), as we."""
    os.chown(tmp_path, SOMEBODY, SOMEBODY)
    done = run_program(["sh", "-c", "ps -o sid= -p $$"], within_s=10, user=owner_of(tmp_path))
    assert int(done.stdout) != os.getsid(0)


def test_a_folder_of_root_s_inside_is_still_his_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He may have moved one that root made, such as runs/, to where root goes next."""
    give_away(repository)
    (repository / "runs").mkdir()
    subprocess.run(["git", "config", "--global", "safe.directory", "*"], check=True)
    its = Repository.around(repository / "runs", "here")
    assert its.user is not None
    assert its.user.uid == SOMEBODY
    monkeypatch.setenv("SUDO_UID", "0")
    assert Repository.around(repository, "here").user == its.user, "root called sudo"
