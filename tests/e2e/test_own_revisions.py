"""A user's own revisions as variants: built once, of commits and of the working tree."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from e2e.commands import FEW, QUICK, environment, run_rounds, scratch, webdyno, webdyno_here
from e2e.own import CMD, SERVER, check_refusal, commit, git, make_repository
from webdyno.core.errors import Exit
from webdyno.host.server_process import CERTIFICATES
from webdyno.measure.folder import RunFolder


def test_the_file_of_a_project_says_how_it_is_measured(repository: Path) -> None:
    with (repository / "webdyno.toml").open("a") as file:
        file.write('[load]\npaths = ["/a", "/b"]\nconnections = 3\n')
    inside = repository / "inside"
    inside.mkdir()
    run_rounds(1, "compare", "rev:.", "rev:.", *QUICK, folder=inside)
    load = RunFolder.open(inside / "run").head.experiment.load
    assert (load.paths, load.connections) == (["/a", "/b"], 3)
    (repository / "webdyno.toml").write_text('[app]\nstart = "x"\n[load]\nconections = 3\n')
    done = webdyno_here("compare", "rev:main", "rev:main", folder=inside)
    assert re.search(r"webdyno\.toml:4: unknown key load\.conections", done.stderr), done.stderr


def test_what_no_request_can_notice_is_not_compared(repository: Path) -> None:
    done = webdyno_here("compare", "rev:.", "rev:main", folder=repository)
    assert done.returncode == Exit.OK, done.stderr
    assert "nothing changed: both are the same" in done.stdout
    (repository / "README.md").write_text("new")
    done = webdyno_here("compare", "rev:.", "rev:main", folder=repository)
    assert "only documentation changed (README.md): nothing to measure" in done.stdout
    assert "compare rev:. rev:. compares one with itself" in " ".join(done.stdout.split())
    assert not (repository / "runs").exists()


def test_revisions_are_built_once_and_the_working_tree_is_one(repository: Path) -> None:
    (repository / "server.py").write_text(SERVER + "# changed\n")
    (repository / "new.txt").write_text("not in the index")
    inside = repository / "inside"
    inside.mkdir()
    before = git(repository, "status", "--porcelain")
    reported = run_rounds(1, "compare", "rev:.", "rev:main", *FEW, folder=inside)
    assert reported.count("building rev:") == 2
    assert (inside / "run/slots.jsonl").is_file()
    assert git(repository, "status", "--porcelain").replace("?? inside/\n", "") == before
    kept = json.loads((inside / "run/run.json").read_text())["versions"]
    head = git(repository, "rev-parse", "--short=10", "HEAD")
    assert kept["main"] == {"web": head}
    assert kept["working tree"]["web"].endswith(" with changes")
    shutil.rmtree(inside / "run")
    again = run_rounds(1, "compare", "rev:.", "rev:HEAD", *FEW, folder=inside)
    assert "building" not in again
    assert "rev:HEAD excludes the changes of the working tree" in again
    shutil.rmtree(inside / "run")
    twice = run_rounds(1, "compare", "rev:HEAD", "rev:HEAD", *FEW, folder=inside)
    assert twice.count("rev:HEAD excludes the changes") == 1


@pytest.mark.long
def test_what_a_run_leaves_in_a_build_is_reported_by_the_next(repository: Path) -> None:
    app = '[app]\nstart = "date >orders.db; exec {} server.py $PORT"\n'
    (repository / "webdyno.toml").write_text(app.format(sys.executable))
    asked = ("compare", "rev:HEAD", "rev:HEAD", *FEW)
    assert "wrote into its build" not in run_rounds(1, *asked, folder=repository)
    shutil.rmtree(repository / "run")
    again = run_rounds(1, *asked, folder=repository)
    assert "earlier runs wrote into its build: orders.db" in again


def test_builds_have_the_variables_of_start_and_those_that_the_file_lets_through(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "WEBDYNO_GITLAB_TOKEN",
        "SOME_VARIABLE",
        "JAVA_HOME",
        "LET_THROUGH",
        *CERTIFICATES,
    ):
        monkeypatch.setenv(name, f"value-of-{name}")
    (repository / "webdyno.toml").write_text(
        """[app]
build = "env >f; test -z \\"$FAILS\\" || { echo SOME_VARIABLE is not set; exit 1; }"
build_variables = ["LET_THROUGH", "NOT_SET"]
start = "env >g; exit 3"
environment.OWN = "mine"
"""
    )
    webdyno("compare", "rev:.", CMD, folder=repository)
    built_with, started_with = (
        dict(line.split("=", 1) for line in file.read_text().splitlines())
        for name in "fg"
        for file in scratch(repository).glob(f"cache/webdyno/revisions/*/files/{name}")
    )
    assert "value-of-WEBDYNO_GITLAB_TOKEN" not in built_with.values()
    assert built_with["LET_THROUGH"] == "value-of-LET_THROUGH"
    assert (built_with["OWN"], built_with["TZ"]) == ("mine", "UTC")
    more = built_with.keys() - started_with.keys()
    assert built_with["SSL_CERT_FILE"] == "value-of-SSL_CERT_FILE"
    assert more <= {"LET_THROUGH", "REPOSITORY", "PWD", "OLDPWD", "SHLVL", "_", *CERTIFICATES}
    failed = webdyno("compare", "rev:.", CMD, "--env=FAILS=1", folder=repository)
    named = re.search(r"build_variables = \[(.*)\] under \[app\]", failed.stderr)
    assert named, failed.stderr
    assert {'"JAVA_HOME"', '"SOME_VARIABLE"'} <= {*named[1].split(", ")}


@pytest.mark.parametrize(
    ("app", "stack", "says"),
    [
        ("", "rev:mian", "has no revision 'mian'; did you mean main"),
        ("", "rev:HEAD~3", "has no revision 'HEAD~3'"),
        ('[app]\nstart = "true"\nbuild = "echo sorry; exit 4"', "rev:.", "exit code 4.*\n.*\n +so"),
        (
            "[app]",
            "rev:.",
            r"webdyno\.toml:1: \[app\] says how it starts by one of start, image and",
        ),
        ('[app]\nstart = "true"\nroot = "."', "rev:.", "root is for a configuration, conf"),
        ('[app]\nimage = "."\nsettings.a = {}', "rev:.", "settings are for start and conf"),
        ('[app]\nstrat = "true"', "rev:.", r"webdyno\.toml:2: unknown key strat; did"),
        ('[app]\nstart = "true"\ndir = "none"', "rev:main", "has no folder none"),
        ('[app]\nstart = "true"\ndir = ".."', "rev:main", r"webdyno\.toml:3: dir is a folder in"),
        ("[load]\nconnections = 1", "rev:main", r"there is no \[app\]"),
        (None, "rev:main", "no webdyno.toml from .*`webdyno init` there"),
    ],
)
def test_a_revision_that_cannot_be_had_is_reported(
    repository: Path, app: str | None, stack: str, says: str
) -> None:
    file = repository / "webdyno.toml"
    if app is None:
        file.unlink()
    elif app:
        file.write_text(app)
    done = webdyno_here("compare", stack, CMD, "--output=run", folder=repository)
    check_refusal(repository, done, says)


def test_how_many_threads_our_libraries_have_is_no_variable_of_builds_and_servers(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    notify = "echo {} ${{OPENBLAS_NUM_THREADS-none}}"
    build, start = notify.format("built"), notify.format("started")
    (repository / "webdyno.toml").write_text(
        f"[app]\nbuild = '{build} >built'\nstart = 'cat built; {start}; exit 3'\n"
    )
    done = webdyno("compare", "rev:.", CMD, folder=repository)
    assert re.search("\n +built none\n +started none", done.stderr), done.stderr


def test_a_secret_in_the_environment_stays_out_of_the_folder(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "s3cr3t-0f-mine"  # noqa: S105 (nobody's)
    notify = 'import os\nprint("with", os.environ["SAYS"], flush=True)\n'
    (repository / "server.py").write_text(notify + SERVER)
    app = f"""[app]
build = 'test "$SAYS" = {secret} && echo "with $SAYS"'
start = "{sys.executable} server.py $PORT"
environment.SAYS = "${{env:MINE}}"
"""
    (repository / "webdyno.toml").write_text(app)
    words = ("compare", "rev:.", CMD, "--env=SAYS=${env:MINE}", *FEW)
    lacking = webdyno("compare", "rev:.", "rev:.", "--output=run", folder=repository)
    check_refusal(repository, lacking, "the environment has no MINE; export MINE=… first")
    assert "building" not in lacking.stderr
    monkeypatch.setenv("MINE", secret)
    run_rounds(1, *words, folder=repository)
    files = [it for it in (repository / "run").rglob("*") if it.is_file()]
    assert not [it for it in files if secret in it.read_text(errors="replace")]
    logs = [it.read_text() for it in files if it.name == "web.log"]
    assert logs
    assert set(logs) == {"with …hidden…\n"}
    builds = Path(environment(repository)["XDG_CACHE_HOME"]) / "webdyno/revisions"
    assert [it.read_text() for it in builds.glob("*/build.log")] == ["with …hidden…\n"]


@pytest.mark.long
def test_submodules_come_from_their_clones_and_what_is_ignored_from_the_build(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    library = tmp_path_factory.mktemp("library")
    make_repository(library, {"hello.py": "BODY = b'hello' * 20\n"})
    git(
        repository,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        str(library),
        "lib",
    )
    (repository / ".gitignore").write_text(".env\n")
    (repository / ".env").write_text("SAYS=hello\n")
    app = f'[app]\nstart = "test -f .env && {sys.executable} server.py $PORT"\n'
    build = "test -f .env && grep -q hello lib/hello.py"
    (repository / "webdyno.toml").write_text(f"{app}build = '{build}'\n")
    commit(repository)
    lacking = webdyno("compare", "rev:main", CMD, folder=repository)
    assert lacking.returncode == 3
    assert "revisions lack what Git ignores" in lacking.stderr
    assert 'cp "$REPOSITORY/.env" .' in lacking.stderr
    (repository / "webdyno.toml").write_text(
        f"""{app}build = 'cp "$REPOSITORY/.env" . && {build}'"""
    )
    commit(repository)
    run_rounds(1, "compare", "rev:main", CMD, *FEW, folder=repository)
    git(repository, "update-index", "--cacheinfo", f"160000,{'1' * 40},lib")
    git(repository, "commit", "-q", "-m", "a commit that nobody has")
    done = webdyno("compare", "rev:HEAD", CMD, folder=repository)
    assert done.returncode == 3
    assert "submodule lib has no commit 1111111111 here" in done.stderr
    git(repository, "submodule", "deinit", "-q", "--force", "lib")
    without = webdyno("compare", "rev:HEAD~1", CMD, folder=repository)
    assert "rev:HEAD~1 is built without its submodule lib" in without.stderr
