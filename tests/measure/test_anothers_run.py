"""Runs of somebody else: what was agreed to runs, as he, and nothing is written elsewhere.

He can exchange whatever lies in his folders, at any moment.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from builders import SimulatedVariant, simulated_run
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.config.catalogue import foreign_parts
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.session import Values
from webdyno.host.users import others_may_change, owner_of
from webdyno.launch.consent import refuse_files_for_others
from webdyno.launch.dispatch import begun_in
from webdyno.measure.folder import RunFolder
from webdyno.measure.repeat import keep_for_repeating, kept_catalogue
from webdyno.measure.variant import commands_user

HE = 12345
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files to others")


@pytest.fixture(autouse=True)
def _not_by_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A folder of root's, in which nothing changes."""
    folder = tmp_path / "victim"
    folder.mkdir()
    yield folder
    assert not [*folder.iterdir()]


def duel(catalogue: Catalogue) -> Experiment:
    stacks = {name: {"stack": name} for name in ("nginx", "apache-event")}
    written = {"title": "t", "question": "q", "site": "static", "variants": stacks}
    return read_experiment(CommandLine(written, {}), [], catalogue)


@pytest.fixture
def his(tmp_path: Path) -> Path:
    """What a run of his has kept."""
    run = tmp_path / "his"
    run.mkdir()
    keep_for_repeating(run, duel(Catalogue.load()), Catalogue.load())
    give(run)
    return run


def give(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, HE, HE, follow_symlinks=False)


def service_file(run: Path) -> Path:
    return run / "catalog/services/nginx/service.toml"


def test_what_was_agreed_to_is_what_runs(his: Path) -> None:
    """He adds a command once that was looked at."""
    agreed_to = kept_catalogue(his)
    template = agreed_to.services["nginx"].folder / "nginx.conf.j2"
    before = template.read_text()
    text = service_file(his).read_text()
    service_file(his).write_text(f'before_start = [["/bin/sh", "-c", "id"]]\n{text}')
    (his / "catalog/services/nginx/nginx.conf.j2").write_text("load_module his.so;\n")
    assert kept_catalogue(his) == agreed_to
    assert template.read_text() == before
    assert not foreign_parts([agreed_to.stack("nginx")], [agreed_to.site("static")])


def test_he_gets_at_nothing_that_was_agreed_to(his: Path) -> None:
    folder = kept_catalogue(his).services["nginx"].folder
    assert folder.lstat().st_uid == HE, "programs that it names run as he"
    private = next(path for path in folder.parents if path.lstat().st_uid == 0)
    assert private.lstat().st_mode & 0o777 == 0o700


def test_links_of_his_lead_to_nothing_of_root_s(his: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    template = his / "catalog/services/nginx/nginx.conf.j2"
    template.unlink()
    template.symlink_to(tmp_path / "secret")
    with pytest.raises(UserError, match="leads out of"):
        kept_catalogue(his)
    shutil.move(his / "catalog", tmp_path / "elsewhere")
    (his / "catalog").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError):
        kept_catalogue(his)


def test_what_comes_from_his_run_runs_as_he_wherever_it_is_measured(
    his: Path, tmp_path: Path
) -> None:
    """Root explains it: that is measured in a folder of root's."""
    text = service_file(his).read_text()
    service_file(his).write_text(f'{text}\n[own]\nwritten = "cmd:./server"\nfolder = "/"\n')
    catalogue = kept_catalogue(his)
    experiment = duel(catalogue)
    (mine := tmp_path / "mine").mkdir()
    keep_for_repeating(mine, experiment, catalogue)
    again = kept_catalogue(mine)
    for each in (catalogue, again):
        owner = owner_of(each.services["nginx"].folder)
        assert owner is not None
        assert owner.uid == HE
        user = commands_user(each, mine)
        assert user is not None
        assert user.uid == HE
    assert commands_user(Catalogue.load(), mine) is None


def test_a_folder_of_his_that_becomes_a_link_has_nothing_written_elsewhere(
    his: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root explains his run in it, and he swaps folders between two files."""
    experiment = duel(catalogue := kept_catalogue(his))
    (his / "explain").mkdir()

    copy = shutil.copyfileobj

    def swapping(source: IO[bytes], target: IO[bytes]) -> None:
        if not (his / "explain").is_symlink():
            (his / "explain").rename(his / "was")
            (his / "explain").symlink_to(victim)
            os.chown(his / "explain", HE, HE, follow_symlinks=False)
        copy(source, target)

    monkeypatch.setattr(shutil, "copyfileobj", swapping)
    with pytest.raises(OperationError, match="can't be written: a link of user 12345's"):
        keep_for_repeating(his / "explain", experiment, catalogue)
    assert (his / "was/catalog/services/nginx/service.toml").is_file()


def test_records_go_nowhere_else(tmp_path: Path, victim: Path) -> None:
    head = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=1).head
    RunFolder.create(tmp_path / "run", head).close()
    run = RunFolder.open(tmp_path / "run")
    run.path.rename(tmp_path / "was")
    run.path.symlink_to(victim)
    os.chown(run.path, HE, HE, follow_symlinks=False)
    with pytest.raises(OperationError, match="a link of user 12345's"):
        run.hold()


def test_what_only_we_may_change_is_not_copied(tmp_path: Path) -> None:
    keep_for_repeating(tmp_path / "run", duel(Catalogue.load()), Catalogue.load())
    kept = kept_catalogue(tmp_path / "run").services["nginx"].folder
    assert kept.is_relative_to(tmp_path)
    assert not others_may_change(tmp_path / "run")
    for changed, mode in ((kept, 0o777), (kept / "service.toml", 0o664)):
        before = changed.stat().st_mode
        changed.chmod(mode)
        assert others_may_change(tmp_path / "run")
        changed.chmod(before)


def test_it_reads_no_file_of_root_s(his: Path, tmp_path: Path) -> None:
    """He names it in [values], and a server of his is sent what is in it."""
    values = {"u": Values(file=str(tmp_path / "credentials"))}
    asking = duel(Catalogue.load()).replace(values=values)
    refuse_files_for_others(Catalogue.load(), [asking])
    (mine := tmp_path / "mine").mkdir()
    keep_for_repeating(mine, duel(Catalogue.load()), Catalogue.load())
    refuse_files_for_others(kept_catalogue(mine), [asking])
    with pytest.raises(UserError, match=r"values\.u: the run is somebody else's, and reads .*cred"):
        refuse_files_for_others(kept_catalogue(his), [asking])
    keep_for_repeating(again := tmp_path / "again", duel(kept_catalogue(his)), kept_catalogue(his))
    assert kept_catalogue(again).of_others, "as where root explains it"


def test_without_what_it_was_made_of_his_run_is_refused(his: Path) -> None:
    shutil.rmtree(his / "catalog")
    with pytest.raises(UserError, match="somebody else's run, without its part"):
        kept_catalogue(his)


def test_his_fleets_are_not_gone_on_with(his: Path) -> None:
    """An experiment of his names files of root's, and hosts are sent what is in them."""
    with pytest.raises(UserError, match="belongs to somebody else"):
        begun_in(his)
