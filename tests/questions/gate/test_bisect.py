"""Which commit made it worse: the walk between a good and a bad commit, on real repositories."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from e2e.own import git
from webdyno.core.errors import OperationError, UserError
from webdyno.core.limits import GateAnswer, GateJudgement
from webdyno.launch.caller import Caller
from webdyno.media.terminal import document_text
from webdyno.questions.gate.failed import Bisection, bisect, bisection_document
from webdyno.systems.repository import Repository


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of nine commits, the oldest first; each is a file more."""
    folder = tmp_path_factory.mktemp("commits")
    git(folder, "init", "-q", "-b", "main")
    for number in range(9):
        (folder / f"file-{number}").touch()
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", f"commit {number}")
    return folder


@pytest.fixture(scope="module")
def commits(home: Path) -> list[str]:
    return git(home, "rev-list", "--reverse", "HEAD").split()


def found(
    folder: Path, answer: Callable[[str], GateAnswer], between: str = "HEAD~8..HEAD"
) -> Bisection:
    """Bisect with an answer for each commit."""

    def ask(base: str, head: str) -> GateJudgement:
        return GateJudgement(answer=answer(head), headline="said", baseline=base, head=head)

    repository = Repository.around(folder, "--bisect")
    return bisect(between, repository, ask, Caller(print, lambda _: pytest.fail("measures")))


def worse_from(
    commits: Sequence[str], first: int, broken: Sequence[int] = ()
) -> Callable[[str], GateAnswer]:
    def answer(commit: str) -> GateAnswer:
        number = commits.index(commit)
        if number in broken:
            raise OperationError("it doesn't start")
        return GateAnswer.FAIL if number >= first else GateAnswer.PASS

    return answer


@pytest.mark.parametrize("first", range(1, 9))
def test_the_first_bad_commit_is_found_with_few_gates(
    home: Path, commits: list[str], first: int
) -> None:
    result = found(home, worse_from(commits, first))
    assert [it.hash for it in result.suspects] == [commits[first]]
    assert result.answer is GateAnswer.FAIL
    assert len(result.tried) <= 4
    assert f"(commit {first})" in result.headline
    assert "wrong in at most 20%" in result.small_print or len(result.tried) < 4
    text = document_text(bisection_document(result))
    assert "✗ FAIL" in text
    assert f"commit {first}" in text


def test_commits_that_cannot_be_measured_are_left_out(home: Path, commits: list[str]) -> None:
    around = found(home, worse_from(commits, 7, broken=[3, 4]))
    assert [it.hash for it in around.suspects] == [commits[7]]
    among = found(home, worse_from(commits, 4, broken=[3, 4]))
    assert {it.hash for it in among.suspects} == set(commits[3:6])
    assert among.answer is GateAnswer.INCONCLUSIVE
    assert "one of 3" in among.headline
    assert all(
        f"commit {number}" in document_text(bisection_document(among)) for number in (3, 4, 5)
    )


def test_where_the_end_is_not_worse_there_is_nothing_to_find(
    home: Path, commits: list[str]
) -> None:
    result = found(home, worse_from(commits, 99))
    assert (result.answer, len(result.tried)) == (GateAnswer.PASS, 1)
    unclear = found(home, lambda _: GateAnswer.INCONCLUSIVE)
    assert (unclear.answer, len(unclear.tried)) == (GateAnswer.INCONCLUSIVE, 1)


def test_a_merged_branch_is_searched(tmp_path: Path, home: Path, commits: list[str]) -> None:
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    git(tmp_path, "checkout", "-q", "-b", "side", commits[4])
    for number in range(4):
        (tmp_path / f"side-{number}").touch()
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", f"side {number}")
    bad = git(tmp_path, "rev-parse", "HEAD~1")
    git(tmp_path, "checkout", "-q", "main")
    git(tmp_path, "merge", "-q", "--no-ff", "-m", "merge", "side")
    with_bad = set(git(tmp_path, "rev-list", "--ancestry-path", f"{bad}..HEAD").split()) | {bad}
    result = found(
        tmp_path,
        lambda it: GateAnswer.FAIL if it in with_bad else GateAnswer.PASS,
        f"{commits[0]}..HEAD",
    )
    assert [it.hash for it in result.suspects] == [bad]


@pytest.mark.parametrize("between", ["HEAD", "..HEAD", "HEAD~2..", "HEAD~2...HEAD", "HEAD..HEAD"])
def test_what_is_no_range_is_refused(home: Path, commits: list[str], between: str) -> None:
    assert commits
    with pytest.raises(UserError, match=r"--bisect"):
        found(home, worse_from(commits, 1), between)


def test_a_folder_with_files_of_the_repository_holds_no_measurements(home: Path) -> None:
    """A commit could bring a run of its own there."""
    repository = Repository.around(home, "--bisect")
    (home / "runs").mkdir(exist_ok=True)
    assert repository.tracks(home)
    assert not repository.tracks(home / "runs")
    assert not repository.tracks(home.parent / "elsewhere")
    (home / "runs/run.json").touch()
    assert not repository.tracks(home / "runs")
    git(home, "add", "runs/run.json")
    assert repository.tracks(home / "runs")
    git(home, "rm", "-q", "-f", "runs/run.json")
