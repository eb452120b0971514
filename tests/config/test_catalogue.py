"""The catalogue: webdyno's own is right; users' own come on top; mistakes name file and line."""

import grp
import os
import pwd
import struct
from contextlib import nullcontext
from pathlib import Path

import pytest

from webdyno.config import Catalogue
from webdyno.config.catalogue import content_of, files_of
from webdyno.core import whose
from webdyno.core.errors import UserError
from webdyno.core.whose import ACCESS_LIST

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


@pytest.mark.parametrize("open_to_others", ["stacks", "sites/x.toml", "."])
def test_a_catalogue_that_others_may_change_is_refused(
    open_folder: Path, open_to_others: str
) -> None:
    for name in ("a", "services/b", "sites/x.toml", "stacks/c"):
        file = open_folder / name
        file.parent.mkdir(exist_ok=True)
        file.touch()
        if name != open_to_others:
            file.chmod(0o600)  # what is private hides nothing behind it
    Catalogue.load([open_folder])
    (open_folder / open_to_others).chmod(0o777)
    with pytest.raises(UserError, match=r"others may change .*copy the catalog"):
        Catalogue.load([open_folder])
    open_folder.chmod(0o700)
    if open_to_others != ".":
        with pytest.raises(UserError, match="others may change"):
            Catalogue.load([open_folder])


def test_what_others_cannot_get_to_is_theirs_to_change_by_no_right(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a checkout by GitLab's runner, whose umask is 0, in a container of an image.

    A closed folder keeps others from names alone, not from what they have open or a name of.
    """
    (folder := open_folder / "closed/catalog/experiments").mkdir(parents=True)
    (file := folder / "mine.toml").touch()
    for part in (folder.parent, folder, file):
        part.chmod(0o777)

    def load() -> None:
        Catalogue.load([folder.parent]).experiment_file(str(file))

    for mode in (0o755, 0o700):
        folder.parents[1].chmod(mode)
        with pytest.raises(UserError, match=rf"others may change .*\(chmod -R go-w {open_folder}"):
            load()
    monkeypatch.setattr("webdyno.core.whose.others_are_here", lambda: False)
    load()
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
        with pytest.raises(UserError, match="others may change"):
            load()


@pytest.mark.parametrize(
    ("namespace", "kind", "status", "others"),
    [
        (1, "overlay", "Name:\tsh\nUid:\t0\t0\t0\t0\n", False),
        (1, "overlay", "Name:\tsh\nUid:\t0\t0\t12345\t0\n", True),
        (1, "overlay", "Name:\tsshd\nUid:\t0\t0\t0\t0\n", True),
        (1, "ext4", "Name:\tsh\nUid:\t0\t0\t0\t0\n", True),
        (whose.FIRST_PID_NAMESPACE, "overlay", "Name:\tsh\nUid:\t0\t0\t0\t0\n", True),
    ],
)
def test_nobody_else_is_in_a_container_of_ours(
    monkeypatch: pytest.MonkeyPatch, namespace: int, kind: str, status: str, *, others: bool
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    read_text, stat = Path.read_text, Path.stat

    def read(path: Path, *args: str) -> str:
        if str(path) == "/proc/self/mounts":
            return f"x / ext4 rw 0 0\nx / {kind} rw 0 0\nx /proc proc rw 0 0\n"
        return status if path.name == "status" else read_text(path, *args)

    def looked(path: Path, **keys: bool) -> os.stat_result:
        found = stat(path, **keys)
        return (
            os.stat_result([found.st_mode, namespace, *found[2:]])
            if str(path) == "/proc/self/ns/pid"
            else found
        )

    monkeypatch.setattr(Path, "read_text", read)
    monkeypatch.setattr(Path, "stat", looked)
    whose.others_are_here.cache_clear()
    assert whose.others_are_here() is others
    whose.others_are_here.cache_clear()


def test_a_catalogue_that_a_list_opens_to_others_is_refused(open_folder: Path) -> None:
    (open_folder / "stacks").mkdir(mode=0o755)
    Catalogue.load([open_folder])
    owner, user, group, mask, other = 1, 2, 4, 16, 32  # of acl(5)
    entries = [(owner, 7, -1), (user, 7, 12345), (group, 5, -1), (mask, 7, -1), (other, 5, -1)]
    packed = b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(open_folder / "stacks", ACCESS_LIST, struct.pack("<I", 2) + packed)
    except OSError:
        pytest.skip("this file system has no access control lists")
    with pytest.raises(UserError, match=r"others may change .*stacks"):
        Catalogue.load([open_folder])


def test_a_group_that_is_not_called_as_we_are_has_others(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory of accounts (LDAP) needn't list them, as those of "domain users".

    Groups of the system itself have the members that are listed, as Debian's "staff" has none, but
    for "users", which may be everybody's first one.
    """
    (open_folder / "stacks").mkdir()
    (open_folder / "stacks").chmod(0o775)
    name = pwd.getpwuid(os.geteuid()).pw_name
    known = [(name, 0, True), ("domain users", 0, False), ("nobody", 0, False)]
    above = os.getegid() + 1
    known += [("staff", above, os.geteuid() == 0), ("users", above, False)]
    for called, of_people, is_ours in known:
        monkeypatch.setattr(whose, "FIRST_GROUP_OF_PEOPLE", of_people)
        monkeypatch.setattr(whose, "USERS", os.getegid() if called == "users" else 100)
        entry = grp.struct_group((called, "x", os.getegid(), []))
        monkeypatch.setattr(grp, "getgrgid", lambda _, entry=entry: entry)
        whose._has_others.cache_clear()
        with nullcontext() if is_ours else pytest.raises(UserError, match=r"may change .*stacks"):
            Catalogue.load([open_folder])
    assert whose._has_others(os.getegid(), of_root=False) is True  # it isn't called as we are
    whose._has_others.cache_clear()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_what_is_somebody_else_s_is_refused(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    (open_folder / "experiments").mkdir()
    file = open_folder / "experiments/mine.toml"
    file.touch()
    catalogue = Catalogue.load([open_folder])
    for named in ("mine", str(file)):
        assert catalogue.experiment_file(named).path == file
    os.chown(file, 12345, 12345)
    with pytest.raises(UserError, match=r"others may change .*mine\.toml, so what is run and read"):
        catalogue.experiment_file(str(file))
    with pytest.raises(UserError, match="others may change"):
        Catalogue.load([open_folder])
    os.chown(file, 0, pwd.getpwnam("nobody").pw_gid)
    file.chmod(0o664)
    with pytest.raises(UserError, match="others may change"):
        Catalogue.load([open_folder])
    os.chown(file, 12345, 12345)
    file.chmod(0o644)
    (open_folder / "his").mkdir()
    (link := open_folder / "his/bench.toml").symlink_to("/etc/hosts")
    os.chown(open_folder / "his", 12345, 12345)
    with pytest.raises(UserError, match=r"others may change .*his, so what is run"):
        catalogue.experiment_file(str(link))
    monkeypatch.setenv("SUDO_UID", "12345")
    assert Catalogue.load([open_folder]).experiment_file(str(file)).path == file


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_an_experiment_s_file_that_others_may_exchange_is_refused(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They put another one in its place, or something next to it that it runs."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    catalogue = Catalogue.load()
    (team := open_folder / "team").mkdir()
    (file := team / "bench.toml").touch()
    (link := open_folder / "link.toml").symlink_to("his/step.toml")
    (his := open_folder / "his").mkdir()
    (his / "step.toml").symlink_to(file)
    assert catalogue.experiment_file(str(file)).path == file
    assert catalogue.experiment_file(str(link)).path == link
    for part, mode in ((team, 0o777), (file, 0o666)):
        before = part.stat().st_mode
        part.chmod(mode)
        for named in (file, link):
            with pytest.raises(UserError, match=f"others may change {part}, so what is run"):
                catalogue.experiment_file(str(named))
        part.chmod(0o1777 if part == team else before)
    assert catalogue.experiment_file(str(file)).path == file
    os.chown(his, 12345, 12345)  # a link of ours leads through his folder
    with pytest.raises(UserError, match=f"others may change {his}, so what is run"):
        catalogue.experiment_file(str(link))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_an_experiment_s_file_is_the_one_whose_owner_was_looked_at(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may exchange it does so between both, and puts it back."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    (file := open_folder / "bench.toml").touch()
    (his := open_folder / "his").write_text('title = "his"')
    os.chown(his, 12345, 12345)
    opens = os.open

    def exchanging(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        descriptor = opens(path, flags, mode, dir_fd=dir_fd)
        if str(path) == file.name:
            his.replace(file)
        return descriptor

    monkeypatch.setattr(os, "open", exchanging)
    assert Catalogue.load().experiment_file(str(file)).data == {}
    assert file.read_text() == 'title = "his"'


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
