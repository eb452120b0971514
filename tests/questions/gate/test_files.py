"""Whether a revision would be measured by other rules: its `webdyno.toml`, and what that names."""

from pathlib import Path

import pytest

from e2e.own import commit
from webdyno.questions.gate.files import Files
from webdyno.systems.project import Project
from webdyno.systems.repository import Repository


def test_rules_that_the_baseline_does_not_have_are_no_change_of_its_program(
    repository: Path,
) -> None:
    """A branch could give itself limits that it keeps."""
    file = repository / "webdyno.toml"
    limits = '[gate.worse_than]\nserver_cpu_us = "{}%"\n'
    there = Repository.around(repository, "here")
    for text, differ in (
        (f'[app]\nstart = "x"\n{limits.format(5)}', True),
        (f'[app]\nstart = "y"\n{limits.format(5)}', False),
        (f'[app]\nstart = "y"\n{limits.format(900)}', True),
        ('[[requests]]\npath = "/"\njson = { some = 1 }\n', True),
        ('[[requests]]\npath = "/"\njson = { some = true }\n', True),
        ('[[requests]]\npath = "/"\njson = { some = true }  # yes\n', False),
    ):
        base = Files(there, there.revision("HEAD", "here"))
        file.write_text(text)
        assert (project := Project.around(repository))
        assert base.rules_differ(project) is differ
        commit(repository)


LIMITS = '[app]\nstart = "./x"\n[gate.worse_than]\nserver_cpu_us = "{}%"\n'


def test_rules_of_another_file_are_others(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A branch could make its file a link to one that is there, or remove the nearer one."""
    (repository / "app/perf").mkdir(parents=True)
    for name, limit in (("", 200), ("app", 3), ("app/perf", 200)):
        (repository / name / "webdyno.toml").write_text(LIMITS.format(limit))
    commit(repository)
    monkeypatch.chdir(repository / "app")
    there = Repository.around(Path.cwd(), "here")
    base = Files(there, there.revision("HEAD", "here"))

    def differ() -> bool:
        project = Project.around(Path.cwd())
        assert project is not None
        return base.rules_differ(project)

    assert not differ()
    (file := repository / "app/webdyno.toml").unlink()
    assert differ()
    file.symlink_to("perf/webdyno.toml")
    assert differ()
    commit(repository)
    base = Files(there, there.revision("HEAD", "here"))
    assert not differ()  # the baseline has that link as well
    file.unlink()
    file.symlink_to(repository / "webdyno.toml")
    commit(repository)
    base = Files(there, there.revision("HEAD", "here"))
    assert differ()  # its link leads out of any revision: nobody knows where to


@pytest.mark.parametrize(
    "named",
    ['[[requests]]\npath = "/"\nbody_file = "{}"', '[values.k]\nfile = "{}"\neach = "turn"'],
)
def test_files_that_requests_are_made_of_are_rules(repository: Path, named: str) -> None:
    """A branch could ask for something lighter."""
    (repository / "webdyno.toml").write_text(f'[app]\nstart = "./x"\n{named.format("a.json")}\n')
    (file := repository / "a.json").write_bytes(b'{"limit": 100}\r\n\xff')
    commit(repository)
    there = Repository.around(repository, "here")
    project = Project.around(repository)
    assert project is not None
    base = Files(there, there.revision("HEAD", "here"))
    assert not base.rules_differ(project)
    file.write_bytes(b'{"limit": 100}\n\xff')  # as Git may write it for another system
    for other in (b'{"limit": 0}', b'{"limit": 100}\x1e\xff', b'{"limit": 100}\r\n\xfe'):
        file.write_bytes(other)
        assert base.rules_differ(project)
    file.unlink()
    commit(repository)
    file.write_bytes(b'{"limit": 100}')
    assert Files(there, there.revision("HEAD", "here")).rules_differ(project)


def test_files_that_a_proto_file_imports_are_rules(repository: Path) -> None:
    (repository / "webdyno.toml").write_text('[load]\nproto_file = "a/search.proto"\n')
    (repository / "a/kinds").mkdir(parents=True)
    (repository / "kinds").mkdir()
    (repository / "a/search.proto").write_text('import "kinds/query.proto";')
    (query := repository / "kinds/query.proto").write_text("words = 1")
    commit(repository)
    there = Repository.around(repository, "here")
    project = Project.around(repository)
    assert project is not None
    base = Files(there, there.revision("HEAD", "here"))
    assert not base.rules_differ(project)
    (nearer := repository / "a/kinds/query.proto").write_text("words = 1")
    assert base.rules_differ(project)
    nearer.unlink()
    query.write_text("words = 9")
    assert base.rules_differ(project)
