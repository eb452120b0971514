"""The catalogue: webdyno's own is right; users' own come on top; mistakes name file and line."""

import os
from pathlib import Path

import pytest

from webdyno.config import Catalogue
from webdyno.config.catalogue import content_of, files_of
from webdyno.core.errors import UserError

SERVICE = """\
title = "Mine"
protocol = "http"
start = ["{{ needs.binary }}"]
needs.binary = { command = ["mine"], apt = "mine" }
version = { command = ["mine", "-v"], pattern = "(.*)" }

[settings.level]
type = "whole"
min = 1
max = 9
default = 5
help = "How much."
"""


def write(folder: Path, kind: str, name: str, text: str) -> Path:
    path = folder / kind / name / f"{kind.removesuffix('s')}.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_every_stack_of_the_catalogue_can_serve_some_site() -> None:
    catalogue = Catalogue.load()
    for stack in catalogue.stacks.values():
        assert stack.name == "redis" or catalogue.sites_for(stack)
        first, *_ = (stack.folder / "stack.toml").read_text(encoding="utf-8").splitlines()
        assert first.startswith("# ")
        assert first.endswith(" ../../services/NAME/service.toml")


def test_a_users_catalogue_comes_on_top(tmp_path: Path) -> None:
    write(tmp_path, "services", "mine", SERVICE)
    write(
        tmp_path,
        "stacks",
        "mine",
        'title = "t"\nserves = ["static"]\nfront = "m"\n[services.m]\nservice = "mine"\n'
        '[settings.size]\nsets = ["m.level"]\ndefault = 7\n',
    )
    catalogue = Catalogue.load([tmp_path])
    exposed = catalogue.stack("mine").exposed_settings()
    assert list(exposed) == ["size"]
    assert exposed["size"].setting.default == 7
    assert "nginx" in catalogue.stacks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SERVICE.replace("start =", "strat ="), r"service\.toml:3: unknown key strat; .* start"),
        (SERVICE.replace('type = "whole"', 'type = "hole"'), r"service\.toml:7: settings\.level"),
        (SERVICE.replace("min = 1", 'min = "a"'), r"service\.toml:9: settings\.level\.min should"),
        (SERVICE.replace('title = "Mine"\n', ""), "title is missing"),
        (SERVICE.replace('command = ["mine"], ', ""), r"service\.toml:4: .*command or file"),
    ],
)
def test_a_mistake_in_a_service(tmp_path: Path, text: str, says: str) -> None:
    write(tmp_path, "services", "mine", text)
    with pytest.raises(UserError, match=says):
        Catalogue.load([tmp_path])


@pytest.mark.parametrize(
    ("service", "says"),
    [
        ("service = []", r"stack\.toml:5: services.web.service should be text"),
        ('service = "ngnix"', r"stack\.toml:5: there is no service 'ngnix'; did you mean nginx"),
        (
            'service = "nginx"\nsettings.workers = 0',
            r"stack\.toml:4: setting workers should be between 1 and 1024",
        ),
        ('service = "nginx"\nlinks.php = "fpm"', r"stack\.toml:.*(no link|no role) "),
    ],
)
def test_a_mistake_in_a_stack(tmp_path: Path, service: str, says: str) -> None:
    head = 'title = "t"\nserves = ["static"]\nfront = "web"\n[services.web]\n'
    write(tmp_path, "stacks", "mine", head + service + "\n")
    with pytest.raises(UserError, match=says):
        Catalogue.load([tmp_path])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('files."../../out" = "a.j2"', r":6: '\.\./\.\./out' should be a path inside"),
        ('files."/etc/cron.d/x" = "a.j2"', r":6: '/etc/cron\.d/x' should be a path inside"),
        ('files."a" = "../../etc/shadow"', r":6: '\.\./.*' should be a path inside"),
        ('folders = ["a", "a/../../b"]', r":6: 'a/\.\./\.\./b' should be a path inside"),
        ('folders = ["a"]\ndata = "b"', r":1: data: 'b' is none of the folders"),
        ('status = { kind = "nginx", socket = "/run/s" }', r":6: '/run/s' should be a path inside"),
        ('environment."A=B" = "c"', r":6: 'A=B' is no name of a variable"),
        ('environment.A = "b\\u0000c"', r":6: there is a NUL byte"),
        ("stop_within_s = inf", r":6: stop_within_s should"),
        ('modules.a = { command = ["a"], pattern = "((" }', r":6: '\(\(' is no regular expression"),
        ('modules.a = { command = ["a"], pattern = "a" }', r":6: 'a' has no group"),
        (
            'needs.b = { command = ["b"], apt = "--purge" }',
            r":6: '--purge' is no name of a package",
        ),
        ('needs.b = { command = ["b"], apt = "libc6-" }', r":6: 'libc6-' is no name of a package"),
        ('needs.b = { command = ["b"], apt = "a b" }', r":6: 'a b' is no name of a package"),
        ('needs.b = { file = ["/usr/**/x"], apt = "b" }', r":6: .*'/usr/\*\*/x' should have \* in"),
        ('needs.b = { file = ["/*/*/*/x"], apt = "b" }', r":6: .*should have \* in 2 of its parts"),
        ('own = { written = "x", removed_by = ["rm"] }', r":6: .*removed_by is for containers"),
    ],
)
def test_nothing_of_a_service_leads_out_of_its_folder(tmp_path: Path, line: str, says: str) -> None:
    head, table = SERVICE.split("\n\n", 1)
    write(tmp_path, "services", "mine", f"{head}\n{line}\n\n{table}")
    with pytest.raises(UserError, match=r"service\.toml" + says):
        Catalogue.load([tmp_path])


def test_a_service_is_started_by_something(tmp_path: Path) -> None:
    write(tmp_path, "services", "mine", SERVICE.replace('"{{ needs.binary }}"', ""))
    with pytest.raises(UserError, match=r"service\.toml:3: start should"):
        Catalogue.load([tmp_path])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('files."../out".text = "a"', r":3: '\.\./out' should be a path inside"),
        ('files."a{n}" = { text = "a", count = 1099511627776 }', r":3: files\.a\{n\}\.count"),
        ('services."../x".service = "redis"', r":3: '\.\./x' is no name for a role"),
        ('services.lock.service = "redis"', r":3: 'lock' is no name for a role"),
        ('environment."A B" = "c"', r":3: 'A B' is no name of a variable"),
        ('setup = [["a\\u0000b"]]', r":3: there is a NUL byte"),
        ('requests = [{ path = "/", body_file = "/etc/passwd" }]', r":3: '/etc/passwd' should be"),
        ('requests = [{ path = "/", body_file = "../key" }]', r":3: '\.\./key' should be a path"),
        ('requests = [{ headers.X = "${env:TOKEN}" }]', r".*\$\{env:TOKEN\}: a site sends no"),
        ('suggests.load.headers.X = "${env:TOKEN}"', r".*\$\{env:TOKEN\}: a site sends no"),
        ('web.index = ["i.html\\nCustomLog |sh"]', r":3: .*CustomLog |sh' is no file's name"),
        ("web.fallback = '/a; alias /etc'", r":3: '/a; alias /etc' is no path"),
        ('php_extensions = ["/home/u/x.so"]', r":3: '/home/u/x\.so' is no name of an extension"),
    ],
)
def test_nothing_of_a_site_leads_out_of_its_folder(tmp_path: Path, line: str, says: str) -> None:
    write(tmp_path, "sites", "mine", f'title = "t"\nneeds = ["static"]\n{line}\n')
    with pytest.raises(UserError, match=r"site\.toml" + says):
        Catalogue.load([tmp_path])


def test_a_role_cannot_lead_out_of_a_stack(tmp_path: Path) -> None:
    text = 'title = "t"\nserves = ["a"]\nfront = "a/b"\n[services."a/b"]\nservice = "nginx"\n'
    write(tmp_path, "stacks", "mine", text)
    with pytest.raises(UserError, match=r"stack\.toml:4: 'a/b' is no name for a role"):
        Catalogue.load([tmp_path])


def test_a_folder_with_an_odd_name_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "services", "mi\nne", SERVICE)
    with pytest.raises(UserError, match=r"'mi\\nne' is no name"):
        Catalogue.load([tmp_path])


def test_a_folder_that_is_no_catalogue_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no catalog, .* services, stacks, sites, experiments"):
        Catalogue.load([tmp_path])


@pytest.mark.timeout(20)
def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "services/mine").mkdir(parents=True)
    os.mkfifo(tmp_path / "services/mine/service.toml")
    assert "mine" not in Catalogue.load([tmp_path]).services


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--catalog .*nowhere: there is no such folder"):
        Catalogue.load([tmp_path / "nowhere"])


def test_what_does_something_else_has_another_sum(tmp_path: Path) -> None:
    (folder := tmp_path / "stacks/mine").mkdir(parents=True)
    (folder / "x; id").mkdir()
    (folder / "run").touch()
    (folder / "text").write_text("x; id")
    (folder / "lib").symlink_to("x; id")
    sums = [content_of(files_of(tmp_path))]
    (folder / "text").replace(folder / "lib")
    sums.append(content_of(files_of(tmp_path)))
    (folder / "run").chmod(0o755)
    assert len({*sums, content_of(files_of(tmp_path))}) == 3
