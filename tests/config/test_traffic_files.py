"""Request files: .http, lines of JSON, TOML."""

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.config.requests import open_secrets
from webdyno.config.traffic import AskedTraffic, read_har, read_request_file, read_workload_file
from webdyno.core.errors import UserError
from webdyno.core.request import WrittenRequest

HTTP_FILE = """
@host = http://127.0.0.1:8000
### the front page
GET {{host}}/
Accept: text/html

###
# @name order
POST {{host}}/orders?dry=1 HTTP/1.1
Content-Type: application/json
Authorization: Bearer {{$processEnv TOKEN}}
# a comment

{
  "id": 7
}

###
http://127.0.0.1:8000/plain

### from a file
PUT /upload

< ./upload.txt
"""


def test_a_http_file(tmp_path: Path) -> None:
    (tmp_path / "all.http").write_text(HTTP_FILE)
    (tmp_path / "upload.txt").write_text("content\n")
    assert read_request_file(tmp_path / "all.http") == [
        {
            "path": "/",
            "method": "GET",
            "name": "the front page",
            "headers": {"Accept": "text/html"},
        },
        {
            "path": "/orders?dry=1",
            "method": "POST",
            "name": "order",
            "headers": {
                "Content-Type": "application/json",
                "Authorization": "Bearer ${env:TOKEN}",
            },
            "body": '{\n  "id": 7\n}',
        },
        {"path": "/plain", "method": "GET"},
        {"path": "/upload", "method": "PUT", "name": "from a file", "body": "content\n"},
    ]


@pytest.mark.parametrize(
    ("line", "method", "path"),
    [
        ("/a?b", "GET", "/a?b"),
        ("http://localhost:3000/a HTTP/1.1", "GET", "/a"),
        ("{{host}}/a", "GET", "/a"),
        ("DELETE localhost:3000/a", "DELETE", "/a"),
        ("GET example.com", "GET", "/"),
    ],
)
def test_a_request_s_line(tmp_path: Path, line: str, method: str, path: str) -> None:
    (tmp_path / "a.http").write_text(line)
    assert read_request_file(tmp_path / "a.http") == [{"path": path, "method": method}]


def test_each_request_may_ask_for_a_host_of_its_own(tmp_path: Path) -> None:
    text = "GET http://127.0.0.1:80/a\nHost: a.example\n\n###\nGET /b\nhost: b.example\n"
    (tmp_path / "a.http").write_text(text)
    hosts = [it["headers"] for it in read_request_file(tmp_path / "a.http")]
    assert hosts == [{"Host": "a.example"}, {"host": "b.example"}]


def test_lines_of_json(tmp_path: Path) -> None:
    lines = '{"url": "http://x/a?b=1", "weight": 3}\n\n{"path": "/c", "method": "DELETE"}\n'
    (tmp_path / "requests").write_text(lines)
    assert read_request_file(tmp_path / "requests") == [
        {"path": "/a?b=1", "weight": 3},
        {"path": "/c", "method": "DELETE"},
    ]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("", "there is no request"),
        ("GET /\nnonsense\n", "a.http:2: 'nonsense' should be a header"),
        ("GET /a b c", "a.http:1: 'GET /a b c' is no request"),
        (
            "GET /\n\n###\nme:x:0:0:/root:/bin/sh\n",
            "a.http:4: 'me:x:0:0:/root:/bin/sh' is",
        ),
        ("hello\n", "a.http:1: 'hello' is no request"),
        ("GET /{{id}}\n", "has a variable in its path"),
        ("GET /\nX: {{token}}\n", "a.http:2: nobody knows what {{token}}"),
        ("PUT /\n\n< gone\n", "gone: there is no such file"),
        ('{"path": "/"}\n{"path": \n', "a.http:2: is no JSON"),
    ],
)
def test_what_is_not_understood_is_named_with_its_line(
    tmp_path: Path, text: str, reported: str
) -> None:
    (tmp_path / "a.http").write_text(text)
    with pytest.raises(UserError) as refused:
        read_request_file(tmp_path / "a.http")
    assert reported in str(refused.value)


@given(st.text(alphabet=st.sampled_from('GET POS/{}:#@< \nx"1é'), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "any.http")
        file.write_text(text, encoding="utf-8")
        for read in (read_request_file, read_har):
            with suppress(UserError):
                assert read(file)


USERS = """\
### the form
# @login
# @capture csrf css #login input[name=csrf]
GET {{host}}/login

###
# @login
# @status 302
POST {{host}}/login
Content-Type: application/x-www-form-urlencoded

name={{user.name}}
&password={{$processEnv PW}}%26
&csrf={{csrf}}

### list
# @flow buy
# @think 500ms
# @capture next css@href a.next
GET {{host}}/items?page={{user.page}}&q=é

###
# @flow buy
# @contains Thank you
GET {{next}}
"""


def test_logins_and_flows_are_annotations(tmp_path: Path) -> None:
    (tmp_path / "a.http").write_text(USERS)
    assert read_request_file(tmp_path / "a.http") == [
        {
            "path": "/login",
            "method": "GET",
            "name": "the form",
            "login": True,
            "capture": {"csrf": {"css": "#login input[name=csrf]"}},
        },
        {
            "path": "/login",
            "method": "POST",
            "login": True,
            "status": 302,
            "headers": {"Content-Type": "application/x-www-form-urlencoded"},
            "form": {"name": "{{user.name}}", "password": "${env:PW}&", "csrf": "{{csrf}}"},
        },
        {
            "path": "/items?page={{user.page}}&q=%C3%A9",
            "method": "GET",
            "name": "list",
            "flow": "buy",
            "think_s": "500ms",
            "capture": {"next": {"css": "a.next", "attribute": "href"}},
        },
        {"path": "{{next}}", "method": "GET", "flow": "buy", "contains": "Thank you"},
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("# @capture csrf xpath //a", r"a.http:1: # @capture should be NAME KIND TEXT"),
        ("# @capture csrf", r"a.http:1: # @capture should be"),
        ("# @status ok", r"a.http:1: # @status should be a number"),
        ("# nobody", r"nobody knows what \{\{x\}\} stands for"),
    ],
)
def test_wrong_annotations_are_named(tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "a.http").write_text(f"{line}\nPOST /a\n\n{{{{x}}}}\n")
    with pytest.raises(UserError, match=says):
        read_request_file(tmp_path / "a.http")


def test_passwords_that_a_run_would_keep_are_named() -> None:
    entries: list[dict[str, object]] = [
        {"path": "/", "headers": {"Cookie": "a=b", "X": "y"}},
        {"path": "/", "form": {"password": "hunter2", "size": "M"}},
        {"path": "/", "json": {"user": {"pin": 1234}}},
        {"path": "/", "body": "pwd=a&x=b"},
        {"path": "/", "body": '{"secret": "${env:A}", "otp": "{{otp}}"}'},
    ]
    assert open_secrets(entries) == ["Cookie", "password", "pwd", "user.pin"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.http", "POST /\n\n< body\n"),
        ("a.jsonl", '{"path": "/", "method": "POST", "body_file": "body"}\n'),
        ("a.jsonl", '{"path": "/", "method": "POST", "json_file": "body"}\n'),
        ("a.txt", "curl -d @body http://127.0.0.1/\n"),
        ("a.txt", "curl --json @begin --json @end http://127.0.0.1/\n"),
        (
            "a.http",
            "# @flow buy\nPOST /\nContent-Type: application/x-www-form-urlencoded\n\n< body\n",
        ),
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        "a=%24%7Benv%3ATOKEN%7D",
        "a=${e\nnv:TOKEN}",
        "a=%2\n4%7Benv%3ATOKEN%7D",
        '"${env:TOKEN}"',
        '"${env:TO\nKEN}"',
        '"\\u0024{env:TOKEN}"',
    ],
)
def test_a_file_that_is_sent_is_data(tmp_path: Path, name: str, text: str, body: str) -> None:
    """Whoever made it doesn't choose which variables of the caller's are sent."""
    (tmp_path / "body").write_text(body)
    (tmp_path / "begin").write_text(body[:5])
    (tmp_path / "end").write_text(body[5:])
    (tmp_path / name).write_text(text)
    try:
        (entry,) = read_request_file(tmp_path / name)
    except UserError:
        return
    request = WrittenRequest.model_validate(entry)
    assert b"s3cret" not in (request.content({"TOKEN": "s3cret"}) or b"")


def test_a_form_of_a_file_that_is_no_text_is_sent_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b"a=\xff\n")
    kind = "Content-Type: application/x-www-form-urlencoded"
    (tmp_path / "a.http").write_text(f"# @flow buy\nPOST /\n{kind}\n\n< body\n")
    (entry,) = read_request_file(tmp_path / "a.http")
    assert WrittenRequest.model_validate(entry).content({}) == b"a=\xff\n"


@pytest.mark.timeout(30)
def test_blanks_of_a_form_are_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "body").write_text(f"a={' ' * 2_000_000}b\n &c=d\n")
    kind = "Content-Type: application/x-www-form-urlencoded"
    (tmp_path / "a.http").write_text(f"# @flow buy\nPOST /\n{kind}\n\n< body\n")
    (entry,) = read_request_file(tmp_path / "a.http")
    assert entry["form"]["c"] == "d"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.http", "POST /\n\n< {}\n"),
        ("a.jsonl", '{{"path": "/", "body_file": "{}"}}\n'),
        ("a.jsonl", '{{"path": "/", "method": "POST", "json_file": "{}"}}\n'),
        ("a.txt", "curl -d @{} http://127.0.0.1/\n"),
    ],
)
@pytest.mark.parametrize("file", ["../secret", "link"])
def test_a_file_of_requests_has_nothing_sent_from_elsewhere(
    tmp_path: Path, name: str, text: str, file: str
) -> None:
    """Whoever made it could have the caller's keys sent."""
    (tmp_path / "secret").write_text("a key")
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / name).write_text(text.format(file))
    with pytest.raises(UserError, match=rf"{file} isn't below .*given"):
        read_request_file(folder / name)


def test_headers_of_a_request_that_are_no_table_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"path": "/", "headers": 5}\n')
    with pytest.raises(UserError, match=r"requests\.0\.headers should be a table, not 5"):
        [*AskedTraffic([str(file)]).overrides([], lambda _: None)]


@pytest.mark.parametrize(
    "names",
    [
        '[[requests]]\npath = "/"\nbody_file = "{}"',
        '[[requests]]\npath = "/"\n[[login]]\npath = "/"\nbody_file = "{}"',
        '[[requests]]\npath = "/"\n[values.u]\nfile = "{}"',
        '[[requests]]\npath = "/"\n[load]\nreplay_file = "{}"',
    ],
)
def test_a_file_of_traffic_names_what_lies_next_to_it(tmp_path: Path, names: str) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    file = folder / "a.toml"
    for near in (tmp_path / "secret", folder / "rows"):
        near.touch()
    for outside in ("../secret", "/etc/passwd"):
        file.write_text(names.format(outside))
        with pytest.raises(UserError, match=rf"a\.toml:\d+: {outside} isn't below .*given"):
            read_workload_file(file)
    file.write_text(names.format("rows"))
    assert str(folder / "rows") in str(read_workload_file(file))


@pytest.mark.parametrize(
    "line", ["# @capture a{}z", "# @capture a css{}", "# @x{}z", "GET /{}z", "GET {}z", "#{}x"]
)
def test_long_lines_of_a_request_file_are_read_at_once(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.http").write_text(line.format(" " * 30_000) + "\nGET /\n")
    began = time.process_time()
    with suppress(UserError):
        read_request_file(tmp_path / "a.http")
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", '[[requests]]\npath = "/"\n[[login]]\npath = "/"\nmethod = "POST"\n{}'),
        ("a.http", "POST /\n\n< body\n"),
        ("a.jsonl", '{{"path": "/", "method": "POST", "body_file": "body"}}\n'),
        ("a.jsonl", '{{"path": "/", "method": "POST", "json_file": "body"}}\n'),
        ("a.txt", "curl -d @body http://127.0.0.1/\n"),
    ],
)
@pytest.mark.parametrize("secret", [False, True])
def test_files_and_variables_that_others_traffic_names_are_not_sent(
    open_folder: Path, name: str, text: str, *, secret: bool
) -> None:
    """They could put a link to one of ours in a file's place before it is read."""
    (open_folder / "body").write_text("[1]")
    (file := open_folder / name).write_text(text.format('body_file = "body"'))
    if secret:
        header = {".http": "GET /\nX: ${env:TOKEN}\n", ".txt": "curl -H 'X: ${env:TOKEN}' x/\n"}
        line = '{"path": "/", "headers": {"X": "${env:TOKEN}"}}\n'
        table = '[[requests]]\npath = "/"\nheaders.X = "${env:TOKEN}"\n'
        file.write_text({**header, ".jsonl": line, ".toml": table}[file.suffix])
    asked = AskedTraffic([str(file)])
    assert [*asked.overrides([], lambda _: None)]
    open_folder.chmod(0o777)
    what = r"\$\{env:TOKEN\}" if secret else "body"
    with pytest.raises(UserError, match=f"others may change {open_folder}, and {what} would be"):
        [*asked.overrides([], lambda _: None)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
@pytest.mark.parametrize("theirs", ["body", "in/body", "link"])
def test_files_of_others_that_ones_own_traffic_names_are_not_sent(
    open_folder: Path, theirs: str
) -> None:
    """In a sticky folder, as /tmp is, they are theirs to exchange for a link to one of ours."""
    open_folder.chmod(0o1777)
    (file := open_folder / "a.toml").write_text(
        f'[[requests]]\npath = "/"\nmethod = "POST"\nbody_file = "{theirs}"\n'
    )
    (open_folder / "in").mkdir()
    for body in ("body", "in/body"):
        (open_folder / body).write_text("x")
    (open_folder / "link").symlink_to("in/body")
    read_workload_file(file)
    part = open_folder / theirs.partition("/")[0]
    os.chown(part, 12345, 12345, follow_symlinks=False)
    with pytest.raises(UserError, match=f"others may change {part}, and {theirs} would be sent"):
        read_workload_file(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give links away")
@pytest.mark.parametrize("name", ["a.http", "a.har", "a.jsonl", "a.toml"])
def test_a_link_of_another_user_leads_to_no_requests(tmp_path: Path, name: str) -> None:
    (link := tmp_path / name).symlink_to("private")
    os.chown(link, 12345, 12345, follow_symlinks=False)
    (tmp_path / "private").write_text("")
    with pytest.raises(UserError, match="a link of user 12345's to private"):
        [*AskedTraffic([str(link)]).overrides([], lambda _: None)]
