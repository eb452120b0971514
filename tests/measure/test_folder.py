"""A run's folder: nothing measured is lost, and nothing half-written is taken for a measurement."""

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import tracemalloc
from contextlib import chdir
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import SimulatedVariant, simulated_run
from webdyno.core.errors import OperationError, UserError
from webdyno.core.run import stacks_file
from webdyno.measure.folder import HEAD_FILE, RunFolder, is_held, newest_run, run_folders

RUN = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=1)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A new run without records."""
    return RunFolder.create(tmp_path / "run", RUN.head)


def test_what_was_written_is_read_again(folder: RunFolder) -> None:
    for record in RUN.records:
        folder.append(record)
    again = RunFolder.open(folder.path)
    assert again.head == RUN.head
    assert again.records() == RUN.records


def test_what_was_sent_stays_closed(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies and sessions of a recording, and lines of configurations, come into its files."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setattr("webdyno.host.users.others_are_here", lambda: True)
    run = RunFolder.create(open_folder / "run", RUN.head).path
    assert run.stat().st_mode & 0o077 == 0
    (full := open_folder / "full").mkdir()
    (full / "file").touch()
    with pytest.raises(UserError, match="is not empty"):
        RunFolder.create(full, RUN.head)
    assert full.stat().st_mode & 0o077


def test_no_link_within_a_run_leads_another_run_elsewhere(
    folder: RunFolder, tmp_path: Path
) -> None:
    """Whoever made a run that was copied may have put it there."""
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (folder.path / "explain").symlink_to(elsewhere)
    with pytest.raises(OperationError, match=r"explain in .*run is a link, or no folder"):
        RunFolder.create(folder.path / "explain/nginx", RUN.head)
    assert not [*elsewhere.iterdir()]
    for place in (elsewhere / "nginx", elsewhere):
        RunFolder.create(place, RUN.head).close()
        with pytest.raises(UserError, match="holds no run"):
            RunFolder.open(folder.path / "explain" / place.relative_to(elsewhere))
        shutil.rmtree(place)


def test_a_run_next_to_the_current_one_is_none_in_it(folder: RunFolder, tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "other", RUN.head).close()
    with chdir(folder.path):
        assert RunFolder.open(Path("../other")).records() == []
    assert RunFolder.open(folder.path / "../other").head == RUN.head


def test_no_link_hides_other_runs(folder: RunFolder, tmp_path: Path) -> None:
    """As in what others have copied there."""
    (tmp_path / "link").symlink_to("0" * 300)
    (bad := tmp_path / "bad").mkdir()
    (bad / HEAD_FILE).symlink_to("0" * 300)
    os.utime(bad / HEAD_FILE, (0, 0), follow_symlinks=False)
    assert newest_run(tmp_path) == folder.path
    assert run_folders(tmp_path).keys() == {folder.path, bad}
    assert run_folders(tmp_path.parent, 2).keys() >= {folder.path, bad}
    assert newest_run(tmp_path / "gone") is None


def test_a_new_run_has_no_records(folder: RunFolder) -> None:
    assert folder.records() == []


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_a_torn_last_line_is_cut_off_and_work_goes_on(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = tmp_path_factory.mktemp("torn") / "run"
    with RunFolder.create(path, RUN.head) as folder:
        folder.append(RUN.records[0])
        folder.append(RUN.records[1])
    file = path / "slots.jsonl"
    first = file.read_bytes().index(b"\n") + 1
    kept = Random(seed).randint(first, file.stat().st_size)
    os.truncate(file, kept)
    with RunFolder.open(path) as folder:
        before = folder.records()
        assert before in ([RUN.records[0]], RUN.records[:2])
        folder.append(RUN.records[2])
        assert folder.records() == [*before, RUN.records[2]]


def test_a_bad_line_elsewhere_is_a_mistake_with_its_place(folder: RunFolder) -> None:
    folder.append(RUN.records[0])
    with (folder.path / "slots.jsonl").open("a") as file:
        file.write('{"kind": "slot"}\n')
    with pytest.raises(UserError, match=r"slots\.jsonl:2: .*round"):
        folder.records()


@pytest.mark.parametrize(
    "end",
    [b"\n\n", b" \r\n\t\n", b"\0" * 4096, b'{"kind":"slo', b'{"kind":"slo\n', b"\xff\xfe\n\n"],
    ids=["blank lines", "spaces", "zeros of a power cut", "torn", "torn, ended", "garbage"],
)
def test_what_a_kill_or_an_editor_leaves_at_the_end_loses_nothing(
    folder: RunFolder, end: bytes
) -> None:
    folder.append(RUN.records[0])
    folder.close()
    with (folder.path / "slots.jsonl").open("ab") as file:
        file.write(end)
    assert folder.records() == RUN.records[:1]
    folder.append(RUN.records[1])
    assert folder.records() == RUN.records[:2]
    assert (folder.path / "slots.jsonl").read_bytes().count(b"\n") == 2


def test_a_blank_line_in_between_is_passed_over(folder: RunFolder) -> None:
    folder.append(RUN.records[0])
    with (folder.path / "slots.jsonl").open("ab") as file:
        file.write(b"\n")
    folder.append(RUN.records[1])
    assert folder.records() == RUN.records[:2]


def test_a_full_disk_is_reported_and_leaves_whole_lines(tmp_path: Path) -> None:
    space = 1_000

    def write_until_full(descriptor: int, data: bytes) -> int:
        nonlocal space
        if space == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.write(descriptor, data[:space])
        space -= written
        return written

    path = tmp_path / "run"
    RunFolder.create(path, RUN.head).close()
    with RunFolder(path, RUN.head, write=write_until_full) as folder:
        folder.append(RUN.records[-1])
        with pytest.raises(
            OperationError, match=r"slots.jsonl: can.t be written: No space left.*make room"
        ):
            folder.append(RUN.records[1])
        assert folder.records() == [RUN.records[-1]]
        space = 1_000_000
        folder.append(RUN.records[1])
        assert folder.records() == [RUN.records[-1], RUN.records[1]]


def test_two_processes_do_not_append_to_one_run(folder: RunFolder) -> None:
    other = RunFolder.open(folder.path)
    with pytest.raises(UserError, match="another webdyno"):
        other.append(RUN.records[0])
    folder.close()
    other.append(RUN.records[0])
    assert folder.records() == [RUN.records[0]]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_another_user_can_keep_nobody_from_appending(open_folder: Path) -> None:
    with RunFolder.create(open_folder / "run", RUN.head) as folder:
        folder.append(RUN.records[0])
    folder.path.chmod(0o755)  # as its owner may, to show it
    script = (
        "import fcntl, os, pathlib, sys\n"
        "held = []\n"
        "for path in pathlib.Path(sys.argv[1]).iterdir():\n"
        "    try:\n"
        "        held.append(os.open(path, os.O_RDONLY))\n"
        "        fcntl.flock(held[-1], fcntl.LOCK_EX)\n"
        "    except PermissionError:\n"
        "        pass\n"
        "print(len(held), flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        ["python3", "-c", script, str(folder.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        user=65534,
        group=65534,
        text=True,
    ) as other:
        assert other.stdout
        assert other.stdout.readline().strip() == "2"  # run.json and slots.jsonl
        assert not is_held(folder.path)
        folder.append(RUN.records[1])
        assert is_held(folder.path)
        folder.close()
        assert not is_held(folder.path)
        other.communicate("\n")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["run.json", "slots.jsonl"])
@pytest.mark.parametrize("what", ["pipe", "device", "socket", "large"])
def test_what_is_no_file_of_a_run_is_refused_and_never_waited_for(
    folder: RunFolder, name: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.close()
    file = folder.path / name
    file.unlink()
    if what == "pipe":
        os.mkfifo(file)
    elif what == "device":
        file.symlink_to("/dev/zero")
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as bound, chdir(folder.path):
            bound.bind(name)
    else:
        monkeypatch.setattr("webdyno.measure.folder.MOST_HEAD_BYTES", 2**20)
        monkeypatch.setattr("webdyno.measure.records_file.MOST_RECORDS_BYTES", 2**20)
        os.truncate(os.open(file, os.O_CREAT | os.O_WRONLY), 2**40)
    with pytest.raises(UserError, match=r"not a regular file|symbolic link|larger than 1 MiB"):
        RunFolder.open(folder.path).records()
    if name == "slots.jsonl":
        with pytest.raises((UserError, OperationError), match=r"can't be|larger than"):
            folder.hold()


def test_a_round_s_folder_stays_inside_the_run(folder: RunFolder, tmp_path: Path) -> None:
    (folder.path / "rounds").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="leads out of"):
        folder.round_folder(0, 1, "nginx")


def test_kept_samples_are_read_from_a_regular_file(folder: RunFolder, tmp_path: Path) -> None:
    folder.add_stacks("nginx", {"a;b": 1})
    folder.add_stacks("nginx", {"a;b": 2})
    file = stacks_file(folder.path, "nginx")
    assert file.read_text() == "a;b 3\n"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(UserError, match="is not a regular file"):
        folder.add_stacks("nginx", {"a;b": 1})
    file.unlink()
    (tmp_path / "secret").write_text("a;b 7\n")
    file.symlink_to(tmp_path / "secret")
    with pytest.raises(UserError, match="is a symbolic link"):
        folder.add_stacks("nginx", {"a;b": 1})


def test_a_killed_process_leaves_its_records_and_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "run"
    script = (
        "import sys, pathlib, time; sys.path.insert(0, sys.argv[2])\n"
        "from test_folder import RUN, RunFolder\n"
        "folder = RunFolder.create(pathlib.Path(sys.argv[1]), RUN.head)\n"
        "folder.append(RUN.records[0]); print('written', flush=True); time.sleep(60)\n"
    )
    tests = Path(__file__).parent
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path), str(tests)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(tests.parent)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.send_signal(signal.SIGKILL)
    folder = RunFolder.open(path)
    folder.append(RUN.records[1])
    assert folder.records() == RUN.records[:2]


def test_a_folder_with_something_in_it_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"not empty.*--output"):
        RunFolder.create(tmp_path, RUN.head)


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationError, match="can't begin a run"):
        RunFolder.create(tmp_path / "file" / "run", RUN.head)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (None, "holds no run"),
        ("{", "not the head of a run"),
        ("[]", "format None"),
        ('{"format": 99}', "format 99"),
        ('{"format": 2}', r"run.json: made by an older version of webdyno; measure again"),
        ('{"format": 3}', "webdyno_version is missing"),
    ],
)
def test_a_folder_without_a_readable_head_is_refused(
    tmp_path: Path, head: str | None, said: str
) -> None:
    if head is not None:
        (tmp_path / "run.json").write_text(head)
    with pytest.raises(UserError, match=said):
        RunFolder.open(tmp_path)


@given(variant=st.text(min_size=1, max_size=20), round_number=st.integers(0, 5_000))
@settings(max_examples=50)
def test_variant_folders_stay_inside_the_run(
    tmp_path_factory: pytest.TempPathFactory, variant: str, round_number: int
) -> None:
    path = tmp_path_factory.mktemp("variants")
    made = RunFolder(path, RUN.head).round_folder(0, round_number, variant)
    assert made.is_dir()
    assert made.resolve().parent.parent == (path / "rounds").resolve()


def test_variants_have_folders_of_their_own(folder: RunFolder) -> None:
    names = ["a", "a/b", ".", "..", "%2E", ".a"]
    assert len({folder.round_folder(0, 1, name) for name in names}) == len(names)


def test_blank_lines_cost_no_more_than_their_bytes(folder: RunFolder) -> None:
    folder.append(RUN.records[0])
    blank = 500_000
    with (folder.path / "slots.jsonl").open("ab") as file:
        file.write(b"\n" * blank)
        file.write(RUN.records[0].model_dump_json(by_alias=True).encode() + b"\n")
    tracemalloc.start()
    try:
        assert folder.records() == [RUN.records[0]] * 2
        assert tracemalloc.get_traced_memory()[1] < 5 * blank
    finally:
        tracemalloc.stop()


def test_a_file_that_has_another_name_is_not_written_to(folder: RunFolder, tmp_path: Path) -> None:
    folder.close()
    theirs = tmp_path / "theirs"
    theirs.write_text("no record")
    records = folder.path / "slots.jsonl"
    records.unlink()
    records.hardlink_to(theirs)
    with pytest.raises(OperationError, match="hard link"):
        RunFolder.open(folder.path).hold()
    assert theirs.read_text() == "no record"


def test_git_ignores_the_runs_of_a_folder_that_a_run_has_made(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "runs/one", RUN.head).close()
    assert (tmp_path / "runs/.gitignore").read_text() == "*\n"
    (tmp_path / "runs/.gitignore").unlink()
    RunFolder.create(tmp_path / "runs/two", RUN.head).close()
    assert not (tmp_path / "runs/.gitignore").exists(), "its user has removed it"
    RunFolder.create(tmp_path / "results/one", RUN.head).close()
    assert not (tmp_path / "results/.gitignore").exists()
