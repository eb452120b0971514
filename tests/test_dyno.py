"""./dyno: what it makes again, and what it doesn't do without a yes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

DYNO = Path(__file__).parents[1] / "dyno"
UV = """#!/bin/sh
mkdir -p "$PROJECT/.venv/bin" "$PROJECT/.venv/lib/python3.11/site-packages"
printf '#!/bin/sh\\necho new\\n' >"$PROJECT/.venv/bin/webdyno"
chmod +x "$PROJECT/.venv/bin/webdyno"
printf %s "$PROJECT/src" >"$PROJECT/.venv/lib/python3.11/site-packages/_webdyno.pth"
"""

SAYS = '#!/bin/sh\necho "$0" "$@" >>"$PROJECT/called"\n'
VERSION = "[ \"$1\" != --version ] || { echo 'cargo 1.90.0 (840b83a10 2025-07-30)'; exit; }\n"
CARGO_SAYS = SAYS.replace("\n", f"\n{VERSION}", 1)


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with everything built, whose environment was made in /elsewhere."""
    home = tmp_path / "home"
    files = {
        "pyproject.toml": "",
        "uv.lock": "",
        "loadgen/src/main.rs": "",
        "loadgen/relay/src/lib.rs": "",
        "loadgen/Cargo.toml": "",
        "loadgen/Cargo.lock": "",
        "loadgen/target/release/loadgen": "#!/bin/sh\n",
        ".dyno/uv/bin/uv": UV,
        ".dyno/engine": "",
        ".dyno/environment": "",
        ".venv/bin/webdyno": "#!/bin/sh\necho old\n",
        ".venv/lib/python3.11/site-packages/_webdyno.pth": "/elsewhere/src",
    }
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    shutil.copy(DYNO, home / "dyno")
    return home


def run(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [home / "dyno", *arguments],
        env=os.environ | {"PROJECT": str(home)} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_copied_checkout_does_not_run_the_originals_code(checkout: Path) -> None:
    done = run(checkout)
    assert done.stdout == "new\n", done.stderr
    assert "copied or moved" in done.stderr


def test_one_that_stayed_is_left_as_it_is(checkout: Path) -> None:
    pth = checkout / ".venv/lib/python3.11/site-packages/_webdyno.pth"
    pth.write_text(str(checkout / "src"))
    done = run(checkout)
    assert (done.stdout, done.stderr) == ("old\n", "")


def test_the_engine_is_built_again_when_other_things_are_in_its_sources(checkout: Path) -> None:
    """Not when they are only written again, as by a checkout around an engine from a cache."""
    called = for_tests(checkout, installs="true")
    (checkout / ".dyno/engine").unlink()
    run(checkout, "report", PATH=with_cargo(checkout))
    assert not called.exists()  # what only shows needs none
    source = checkout / "loadgen/src/main.rs"
    builds = []
    for text in ("fn main() {}", "fn main() {}", "fn main() { }"):
        source.write_text(text)
        os.utime(source, (2**31, 2**31))
        run(checkout, PATH=with_cargo(checkout))
        builds.append(called.read_text().count(" build "))
        os.utime(checkout / ".dyno/engine", (2**30, 2**30))
    assert builds == [1, 1, 2]


def test_nobody_elses_settings_decide_how_it_is_built(checkout: Path) -> None:
    """Cargo looks for them from the folder on that it is called in, also in those above."""
    for_tests(checkout, installs="true")
    (checkout / ".dyno/engine").unlink()
    write_program(checkout / "bin/cargo", f'{CARGO_SAYS}pwd >>"$PROJECT/called"\n')
    run(checkout, PATH=with_cargo(checkout))
    words, folder, *_ = (checkout / "called").read_text().splitlines()
    assert f"--manifest-path {checkout}/loadgen/Cargo.toml" in words
    assert folder == "/"


def test_commands_that_it_prints_have_the_shortest_name(checkout: Path, tmp_path: Path) -> None:
    """Linked as `webdyno` into a folder of the PATH, that; else the path it was called by."""
    pth = checkout / ".venv/lib/python3.11/site-packages/_webdyno.pth"
    pth.write_text(str(checkout / "src"))
    (checkout / ".venv/bin/webdyno").write_text('#!/bin/sh\necho "$WEBDYNO_CALLED_AS"\n')
    assert run(checkout).stdout == f"{checkout}/dyno\n"
    links = tmp_path / "links"
    links.mkdir()
    (links / "webdyno").symlink_to(checkout / "dyno")
    assert run(checkout, PATH=f"{links}:{os.environ['PATH']}").stdout == "webdyno\n"


@pytest.mark.parametrize(
    ("path", "kept"),
    [(":/opt", "/opt"), (".:/opt::a:/b c:", "/opt:/b c"), (":", ""), ("", ""), ("/opt", "/opt")],
)
def test_python_imports_from_no_current_folder(checkout: Path, path: str, kept: str) -> None:
    pth = checkout / ".venv/lib/python3.11/site-packages/_webdyno.pth"
    pth.write_text(str(checkout / "src"))
    (checkout / ".venv/bin/webdyno").write_text('#!/bin/sh\necho "$PYTHONPATH"\n')
    assert run(checkout, PYTHONPATH=path).stdout == f"{kept}\n"


@pytest.mark.parametrize(
    ("cargo", "said"),
    [
        ("#!/bin/sh\necho 'no toolchain is set'; exit 1\n", "this one says: no toolchain is set"),
        ("#!/bin/sh\necho 'cargo 1.75.0'\n", "a newer Rust than cargo 1.75.0"),
    ],
)
def test_all_that_is_missing_is_said_at_once(
    checkout: Path, tmp_path: Path, cargo: str, said: str
) -> None:
    (checkout / "loadgen/target/release/loadgen").unlink()
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "dirname", "readlink", "find", "mkdir", "grep", "rm"):
        (programs / name).symlink_to(shutil.which(name) or "/bin/false")
    write_program(programs / "cargo", cargo)
    write_program(programs / "df", "#!/bin/sh\necho title; echo disk 9 9 1000 9% /\n")
    done = run(checkout, PATH=str(programs))
    assert done.returncode == 3
    for missing in (said, "Python 3.11 or newer", "2 GB are needed"):
        assert missing in done.stderr


def test_nothing_is_installed_without_a_yes(checkout: Path, tmp_path: Path) -> None:
    """A machine without a linker, where the engine has to be built."""
    (checkout / "loadgen/target/release/loadgen").unlink()
    pth = checkout / ".venv/lib/python3.11/site-packages/_webdyno.pth"
    pth.write_text(str(checkout / "src"))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "dirname", "readlink", "find", "mkdir", "id", "grep", "tail", "touch", "rm"):
        (programs / name).symlink_to(shutil.which(name) or "/bin/false")
    write_program(programs / "cargo", CARGO_SAYS)
    write_program(programs / "apt-get", SAYS)
    done = run(checkout, PATH=str(programs))
    assert done.returncode == 3
    assert "apt-get install gcc libc6-dev" in done.stderr
    assert "--yes" in done.stderr
    assert not (checkout / "called").exists()
    run(checkout, "up", "--yes", PATH=str(programs), SUDO="")
    assert "apt-get" in (checkout / "called").read_text()


def for_tests(checkout: Path, installs: str) -> Path:
    """Make a checkout whose programs only write down that they were called; give where."""
    (checkout / ".venv/lib/python3.11/site-packages/_webdyno.pth").write_text(f"{checkout}/src")
    installing = f'case "$1" in *test_packages.py) {installs};; esac\n'
    for name, text in {
        "bin/cargo": CARGO_SAYS,
        ".venv/bin/python": f"#!/bin/sh\n{installing}{SAYS}",
        "scripts/check": SAYS,
        "scripts/test": SAYS,
    }.items():
        write_program(checkout / name, text)
    return checkout / "called"


def with_cargo(checkout: Path) -> str:
    return f"{checkout}/bin:{os.environ['PATH']}"


def test_tests_begin_once_their_packages_are_there(checkout: Path) -> None:
    """They are installed while the engine is built, and the checks run next to all of it."""
    called = for_tests(checkout, installs="sleep 0.3")
    done = run(checkout, "test", "tests/core", PATH=with_cargo(checkout))
    assert done.returncode == 0, done.stderr
    calls = called.read_text().splitlines()
    calls.remove(f"{checkout}/scripts/check")
    *before, last = calls
    assert sorted(call.split()[1] for call in before) == [
        "scripts/test_packages.py",
        "scripts/unpack_packages.py",
        "test",
    ]
    assert last == f"{checkout}/scripts/test tests/core"


def test_checks_that_fail_let_the_tests_end_and_fail_in_the_end(checkout: Path) -> None:
    called = for_tests(checkout, installs="true")
    (checkout / "scripts/check").write_text("#!/bin/sh\necho 'a type is wrong'; exit 1\n")
    done = run(checkout, "test", PATH=with_cargo(checkout))
    assert done.returncode == 3
    assert "a type is wrong" in done.stderr
    assert f"{checkout}/scripts/test" in called.read_text()


def test_with_full_they_have_the_engine_as_people_use_it_too(checkout: Path) -> None:
    called = for_tests(checkout, installs="true")
    (checkout / "loadgen/target/release/loadgen").unlink()
    done = run(checkout, "test", "--full", PATH=with_cargo(checkout))
    assert done.returncode == 0, done.stderr
    cargo = [it.split()[1] for it in called.read_text().splitlines() if "bin/cargo" in it]
    assert cargo == ["build", "test"]


def test_without_their_packages_no_tests_begin(checkout: Path) -> None:
    called = for_tests(checkout, installs='echo "no such package" >&2; exit 3')
    done = run(checkout, "test", PATH=with_cargo(checkout))
    assert done.returncode == 3
    assert "no such package" in done.stderr
    assert "scripts/test\n" not in called.read_text()
