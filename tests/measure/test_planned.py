"""What a variant is asked for: spelled out, named, filled in; and what stays out of the folder."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError

from builders import SimulatedVariant, response, run_head
from webdyno.config import Catalogue, CommandLine, read_experiment, read_overrides
from webdyno.core.errors import UserError
from webdyno.core.hiding import HIDDEN, keep_secret
from webdyno.core.load import Load
from webdyno.core.records import IncidentRecord, StopRecord
from webdyno.core.request import WrittenRequest
from webdyno.core.session import Values
from webdyno.host.users import open_log
from webdyno.load.interface import Expectation
from webdyno.measure.planned import planned_requests, secrets_of
from webdyno.measure.redact import hide_in_files, line_of, names_in, without_secrets

SITE = Catalogue.load().site("static")
VARIANTS = {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}}


def read(*overrides: str, **more: object) -> object:
    data = {"title": "t", "question": "q?", "site": "static", "variants": VARIANTS, **more}
    return read_experiment(CommandLine(data, {}), read_overrides(overrides), Catalogue.load())


def test_patterns_share_their_weight_and_pages_have_the_site_s_answer() -> None:
    requests = [
        WrittenRequest(path="/many/{1..4}.txt", weight=2.0),
        WrittenRequest(path="/hello.txt", headers={"accept": "b"}),
        WrittenRequest(path="/hello.txt", method="POST", json_={"a": ["é"]}),
    ]
    load = Load(headers={"Accept": "a", "X": "y"})
    asked = planned_requests(requests, load, SITE, {})
    assert [it.weight for it in asked] == [0.5] * 4 + [1.0, 1.0]
    assert [it.endpoint for it in asked] == ["/many/{1..4}.txt"] * 4 + [
        "/hello.txt",
        "POST /hello.txt",
    ]
    assert asked[4].expect.body_bytes == 13
    assert asked[4].headers == {"X": "y", "accept": "b"}
    assert asked[5].expect == Expectation(None)
    assert asked[5].body == '{"a": ["é"]}'.encode()
    assert asked[5].headers == {"Accept": "a", "X": "y", "Content-Type": "application/json"}


def test_what_has_no_name_of_its_own_is_numbered_and_one_alone_has_none() -> None:
    twice = [WrittenRequest(path="/", method="POST", body=body) for body in "ab"]
    assert [it.endpoint for it in planned_requests(twice, Load(), SITE, {})] == [
        "POST /",
        "POST / (2)",
    ]
    named = [it.model_copy(update={"name": "both"}) for it in twice]
    assert [it.endpoint for it in planned_requests(named, Load(), SITE, {})] == [None, None]
    many = [WrittenRequest(path=f"/{n}") for n in range(51)]
    assert {it.endpoint for it in planned_requests(many, Load(), SITE, {})} == {None}


def test_secrets_are_filled_in_and_what_is_missing_is_named() -> None:
    load = Load(headers={"Authorization": "Bearer ${env:TOKEN}"})
    requests = [WrittenRequest(path="/", method="PUT", body="${env:OTHER}${env:TOKEN}$x")]
    environment = {"TOKEN": "abc", "OTHER": "d"}
    (asked,) = planned_requests(requests, load, SITE, environment)
    assert asked.body == b"dabc$x"
    assert asked.headers == {"Authorization": "Bearer abc"}
    assert secrets_of(requests, load, environment) == {"abc", "d"}
    with pytest.raises(UserError, match="the environment has no OTHER; export OTHER=… first"):
        planned_requests(requests, load, SITE, {"TOKEN": "abc"})
    with pytest.raises(UserError, match="text in one line"):
        planned_requests(requests, load, SITE, {"TOKEN": "a\r\nb", "OTHER": "d"})


def test_values_of_a_call_are_data(tmp_path: Path) -> None:
    """Secrets are filled in where the caller wrote them, not where others' texts meet."""
    (file := tmp_path / "users.csv").write_text(
        "name,a,b\nenv:TOKEN,${env:TO,KEN}\n${env:TOKEN},,\n"
    )
    json_ = {"name": "${{{u.name}}}", "both": "{{u.a}}{{u.b}}", "own": "${env:TOKEN}"}
    call = WrittenRequest.model_validate(
        {
            "method": "a.B/C",
            "json": json_,
            "headers": {"x": "${{{u.name}}} ${env:TOKEN}"},
            "contains": "by {{u.name}}",
        }
    )
    values = {"u": Values(file=str(file))}
    first, second = planned_requests([call], Load(), SITE, {"TOKEN": 'a"bc'}, values)
    assert json.loads(first.json or "") == {
        "name": "${env:TOKEN}",
        "both": "${env:TOKEN}",
        "own": 'a"bc',
    }
    assert first.headers == {"x": '${env:TOKEN} a"bc'}
    assert (second.expect.contains, second.weight) == ("by ${env:TOKEN}", 0.5)


def test_records_hide_secrets_in_any_text_but_where_it_is_a_name() -> None:
    keep_secret(["variant", "measure"])
    incident = IncidentRecord(
        round=1,
        variant="variant",
        happened_at=datetime.now(UTC),
        what='said "variant"',
        log_tail=["a variant", "measure"],
    )
    kept = without_secrets(incident, frozenset({"variant"}))
    line = json.loads(line_of(kept))
    assert (line["variant"], line["what"]) == ("variant", f'said "{HIDDEN}"')
    assert line["log_tail"] == [f"a {HIDDEN}", HIDDEN]
    assert line["kind"] == "incident"
    stop = StopRecord(round=0, stopped_at=datetime.now(UTC), reason="bounds", why="measure")
    keep_secret(["bounds", "stop"])
    kept_stop = without_secrets(stop, frozenset())
    assert (kept_stop.kind, kept_stop.reason, kept_stop.why) == ("stop", "bounds", HIDDEN)


def test_requests_keep_their_names_where_a_part_of_one_is_a_secret() -> None:
    keep_secret(["production"])
    asked = [
        WrittenRequest(path="/production/{1..2}"),
        WrittenRequest(path="/production", method="POST"),
    ]
    head = run_head()
    changed = head.experiment.replace(requests=asked, load=Load())
    names = names_in(head.replace(experiment=changed))
    for path in ("/production/2", "POST /production"):
        answer = response(SimulatedVariant("a"), path).replace(body_start="it is production")
        kept = without_secrets(answer, names)
        assert (kept.path, kept.body_start) == (path, f"it is {HIDDEN}")


def test_files_hide_secrets_and_links_are_not_followed(tmp_path: Path) -> None:
    keep_secret(["variant"])
    (tmp_path / "sub").mkdir()
    log, other = tmp_path / "sub" / "log", tmp_path / "other"
    log.write_bytes(b"\xffvariant\n")
    other.write_text("variant")
    (tmp_path / "sub" / "link").symlink_to(other)
    hide_in_files(tmp_path / "sub", tmp_path)
    assert log.read_bytes() == b"\xff" + HIDDEN.encode() + b"\n"
    (run := tmp_path / "run").mkdir()
    (run / "rounds").symlink_to(tmp_path)
    hide_in_files(run / "rounds", run)
    assert other.read_text() == "variant"


def changes(file: Path) -> tuple[int, ...]:
    """What says that a file was written or replaced; reading changes its time of access alone."""
    found = file.stat()
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@pytest.mark.parametrize("part_bytes", [1, 2, 5, 7, 64])
def test_secrets_are_hidden_wherever_a_part_of_a_large_file_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_bytes: int
) -> None:
    monkeypatch.setattr("webdyno.measure.redact.PART_BYTES", part_bytes)
    log, other = tmp_path / "log", tmp_path / "other"
    log.write_text("token-long and token-of-mine, token-of-minetoken-long dG9rZW4tbG9uZw==\nto")
    log.chmod(0o640)
    other.write_text("token\n-long")
    untouched = changes(other)
    keep_secret(["token-of-mine", "token-long"])
    hide_in_files(tmp_path, tmp_path)
    assert log.read_text() == f"{HIDDEN} and {HIDDEN}, {HIDDEN}{HIDDEN} {HIDDEN}==\nto"
    assert log.stat().st_mode & 0o777 == 0o640
    assert changes(other) == untouched
    assert sorted(it.name for it in tmp_path.iterdir()) == ["log", "other"]


def test_others_may_read_logs_once_no_secret_is_in_them(tmp_path: Path) -> None:
    keep_secret(["token-of-mine"])
    log, quiet = tmp_path / "a.log", tmp_path / "b.log"
    for path, text in ((log, b"token-of-mine"), (quiet, b"nothing")):
        with open_log(path, None) as file:
            file.write(text)
        assert path.stat().st_mode & 0o777 == 0o600
    hide_in_files(tmp_path, tmp_path)
    assert [path.stat().st_mode & 0o777 for path in (log, quiet)] == [0o644, 0o644]


@pytest.mark.parametrize(
    ("entry", "reported"),
    [
        ({"path": "x"}, "a path starts with /"),
        ({"path": "/", "method": "get"}, "capital letters"),
        ({"path": "/", "body": "x"}, "GET has no body"),
        ({"path": "/", "method": "PUT", "body": "x", "json": 1}, "body and json are both the body"),
        ({"path": "/", "headers": {"Upgrade": "x"}}, "the load generator itself sends Upgrade"),
        ({"path": "/", "headers": {"TE": "gzip"}}, "the load generator itself sends TE"),
        ({"path": "/", "headers": {"Host": "a b"}}, "is no host, such as example.com"),
        ({"path": "/", "headers": {"Host": "http://a"}}, "is no host, such as example.com"),
        ({"path": "/", "headers": {"Accept-Encoding": "br"}}, "can't look into bodies"),
        ({"path": "/", "weight": 0}, "should be more than 0"),
        ({"path": "/", "weigth": 1}, "unknown key requests.0.weigth"),
        ({"path": "/", "method": "PUT", "body_file": "gone"}, "gone: there is no such file"),
    ],
)
def test_a_wrong_request_is_reported_with_its_key(entry: dict[str, object], reported: str) -> None:
    with pytest.raises(UserError) as refused:
        read(requests=[entry])
    assert reported in str(refused.value)


def test_requests_and_paths_exclude_each_other_and_other_generators_say_what_they_can_not_do() -> (
    None
):
    with pytest.raises(UserError, match=r"and so do load\.paths; leave one out"):
        read(requests=[{"path": "/"}], load={"paths": ["/hello.txt"]})
    both = [{"path": "/", "weight": 2}, {"path": "/hello.txt"}]
    with pytest.raises(UserError, match="zipf and the requests' weights"):
        read(requests=both, load={"zipf": 1.0})
    for entry, reported in [
        ({"path": "/", "method": "POST"}, "is requested GET only here, not POST"),
        ({"path": "/", "contains": "x"}, "looks into no response"),
        ({"path": "/", "headers": {"A": "${env:B}"}}, "would show secrets"),
    ]:
        for generator in ("ab", "wrk"):
            with pytest.raises(UserError, match=reported):
                read(f"generator={generator}", requests=[entry])


def test_a_protocol_that_a_stack_does_not_speak_is_refused_with_those_that_do() -> None:
    phps = {"a": {"stack": "nginx"}, "b": {"stack": "varnish-front"}}
    with pytest.raises(
        UserError, match=r"stack varnish-front can't be asked over h2.*nginx"
    ) as reported:
        read("load.protocol=h2", variants=phps)
    assert "--set load.protocol=h2" in str(reported.value)
    with pytest.raises(UserError, match=r"give load\.protocol instead"):
        read("variants.a.settings.protocol=h2")
    with pytest.raises(UserError, match="streams needs HTTP/2"):
        read("load.streams=2")
    with pytest.raises(UserError, match=r"plain HTTP/1\.1 only"):
        read("load.protocol=https", "load.idle_connections=2")
    with pytest.raises(UserError, match='protocol = "http" only'):
        read("load.protocol=https", "generator=wrk")


def test_a_body_is_sent_as_it_is() -> None:
    with pytest.raises(ValidationError, match="no base64"):
        WrittenRequest(path="/", method="PUT", body_base64="?")
    (asked,) = planned_requests(
        [WrittenRequest(path="/", method="PUT", body_base64="AAH/")], Load(), SITE, {}
    )
    assert asked.body == b"\x00\x01\xff"


@pytest.mark.parametrize(("said", "wanted"), [(None, None), (204, 204)])
def test_any_status_of_2xx_is_right_for_a_system_of_which_nothing_is_known(
    said: int | None, wanted: int | None
) -> None:
    own = SITE.model_copy(update={"paths": {}})
    (asked,) = planned_requests([WrittenRequest(path="/health", status=said)], Load(), own, {})
    assert asked.expect.status == wanted
