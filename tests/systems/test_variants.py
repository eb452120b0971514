"""Own systems become parts of a catalogue, wherever an experiment names them."""

import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from webdyno.config import Catalogue, CommandLine, Draft
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.measure.planned import sampled_experiment
from webdyno.servers.layout import filled_variables
from webdyno.servers.service_graph import resolve_stack
from webdyno.servers.templates import RenderedJob
from webdyno.systems.variants import resolve

CMD = "cmd:./server --port $PORT"


def resolved(folder: Path, variants: dict[str, Any], **more: object) -> tuple[Draft, Catalogue]:
    draft = Draft.of(
        CommandLine({"title": "t", "question": "q", "variants": variants, **more}, {}), []
    )
    return resolve(draft, Catalogue.load(), folder, lambda _: None, lambda _: None)


def test_a_command_becomes_a_stack(tmp_path: Path) -> None:
    variants = {"a": {"stack": CMD, "environment": {"X": "{{ 1 }}"}}, "b": {"stack": CMD}}
    draft, catalogue = resolved(tmp_path, variants)
    experiment = draft.check(catalogue)
    first, second = (catalogue.stack(variant.stack) for variant in experiment.variants.values())
    assert first != second
    assert experiment.site == "own"
    service = first.services["web"].service
    assert service.start == ["/bin/sh", "-c", "./server --port $PORT"]
    assert service.environment["PORT"] == "{{ server.port }}"
    assert "{{ 1 }}" not in service.environment["X"]
    assert service.own is not None
    assert service.own.folder == str(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give links away")
@pytest.mark.parametrize("link", ["app", "app/inner"])
def test_a_link_of_somebody_else_s_leads_to_no_program(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    (open_folder / "real/inner").mkdir(parents=True)
    (open_folder / "app").symlink_to("real")
    variants = {"a": {"stack": CMD, "dir": link}, "b": {"stack": CMD}}
    resolved(open_folder, variants)
    os.chown(open_folder / "app", 12345, 12345, follow_symlinks=False)
    with pytest.raises(UserError, match="can't be read"):
        resolved(open_folder, variants)


def test_programs_name_their_functions_where_they_are_sampled_and_only_there(
    tmp_path: Path,
) -> None:
    variants = {"a": {"stack": CMD, "environment": {"NODE_OPTIONS": "--no-warnings"}}}
    draft, catalogue = resolved(tmp_path, variants | {"b": {"stack": CMD}})
    experiment = draft.check(catalogue)
    sampled = sampled_experiment(experiment, catalogue)
    options = "--perf-basic-prof --interpreted-frames-native-stack"
    for name, own in {"a": f"--no-warnings {options}", "b": options}.items():
        assert _environment(experiment, catalogue, name).get("PYTHONPERFSUPPORT") is None
        there = _environment(sampled, catalogue, name)
        assert (there["NODE_OPTIONS"], there["PYTHONPERFSUPPORT"]) == (own, "1")
    assert _environment(experiment, catalogue, "a")["NODE_OPTIONS"] == "--no-warnings"


def test_a_program_gets_the_secrets_that_it_names_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was asked for them read no other names."""
    monkeypatch.setenv("NAMED", "first-one")
    monkeypatch.setenv("HIDDEN", "second-one")
    environment = {"A": "${env:NAMED}"}
    variants = {"a": {"stack": CMD, "environment": environment}, "b": {"stack": CMD}}
    draft, catalogue = resolved(tmp_path, variants)
    experiment = draft.check(catalogue)
    assert _environment(experiment, catalogue, "a")["A"] == "first-one"
    stack = catalogue.stack(experiment.variants["a"].stack)
    roles = resolve_stack(stack, catalogue.site(experiment.site), {}, 1).roles
    hidden = "{{ '$' ~ '{env:HIDDEN}' }}"
    service = roles[0].service.replace(environment={"A": hidden})
    filled = RenderedJob({"environment": {"A": "${env:HIDDEN}"}}, {})
    with pytest.raises(UserError, match="HIDDEN"):
        filled_variables(replace(roles[0], service=service), filled)


def test_samples_decide_on_cpu_time_where_a_gate_counts_instructions(tmp_path: Path) -> None:
    draft, catalogue = resolved(tmp_path, {"a": {"stack": CMD}, "b": {"stack": CMD}})
    experiment = draft.check(catalogue).with_measure(decide_on="instructions")
    sampled = sampled_experiment(experiment, catalogue)
    assert experiment.counts_instructions
    assert not sampled.counts_instructions
    assert sampled.measure.decide_on == "server_cpu_us"


def _environment(experiment: Experiment, catalogue: Catalogue, variant: str) -> Mapping[str, str]:
    """Give the variables with which a variant's program is started."""
    stack = catalogue.stack(experiment.variants[variant].stack)
    site = catalogue.site(experiment.site_of(variant))
    roles = resolve_stack(stack, site, experiment.settings_of(variant), 1).roles
    (role,) = roles
    filled = RenderedJob({"environment": role.service.environment}, {})
    return filled_variables(role, filled)


@pytest.mark.parametrize(
    "variant",
    [
        {"stack": "conf:\0"},
        {"stack": "conf:nginx:a\0b"},
        {"stack": "image:\0"},
        {"stack": "rev:a\0"},
        {"stack": CMD, "dir": "\0"},
        {"stack": "conf:a", "root": "a\0"},
    ],
)
def test_a_nul_is_refused(tmp_path: Path, variant: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="NUL"):
        resolved(tmp_path, {"a": variant, "b": {"stack": "nginx"}})


def test_a_command_has_the_settings_that_are_declared_for_it(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "workers": {"type": "whole", "min": 1, "max": 16},
        "fast": {"type": "switch", "default": True},
    }
    variants = {
        "a": {
            "stack": f"{CMD} --workers $WORKERS",
            "settings": {**settings, "log_level": {"type": "choice", "choices": ["info", "off"]}},
        },
        "b": {"stack": f"{CMD} --workers $WORKERS", "settings": settings},
    }
    draft, catalogue = resolved(tmp_path, variants)
    experiment = draft.check(catalogue)
    assert experiment.variants["a"].settings == {}
    service = catalogue.stack(experiment.variants["a"].stack).services["web"].service
    workers, level = service.settings["workers"], service.settings["log_level"]
    assert (workers.default, level.default) == (1, "info")
    assert workers.tune
    assert service.environment["WORKERS"] == "{{ settings['workers'] }}"
    assert service.environment["LOG_LEVEL"] == "{{ settings['log_level'] }}"
    assert "lower" in service.environment["FAST"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nginx.conf", "worker_processes ${settings.workers};\nhttp { server { listen 80; } }\n"),
        (
            "apache.conf",
            "<VirtualHost *:80>\nThreadsPerChild ${settings.workers}\n</VirtualHost>\n",
        ),
        (
            "haproxy.cfg",
            "global\n nbthread ${settings.workers}\nfrontend f\n bind :80\n mode http\n",
        ),
    ],
)
def test_a_configuration_has_places_for_the_settings_that_are_declared_for_it(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    settings = {"workers": {"type": "whole", "min": 1, "max": 16, "default": 2}}
    variants = {"a": {"stack": f"conf:{name}", "settings": settings}, "b": {"stack": "nginx"}}
    draft, catalogue = resolved(tmp_path, variants, site="static")
    variant = draft.check(catalogue).variants["a"]
    service = next(iter(catalogue.stack(variant.stack).services.values())).service
    assert service.settings["workers"].default == 2
    template = (service.folder / next(iter(service.files.values()))).read_text()
    assert "{{ settings['workers'] }}" in template
    assert "${settings" not in template


@pytest.mark.parametrize(
    ("place", "settings", "says"),
    [
        ("1", {"workers": {"type": "whole", "min": 1, "max": 9}}, "has no place in"),
        ("${settings.workers}", {"x": {"type": "switch"}}, "no such setting is declared"),
    ],
)
def test_settings_and_places_belong_together(
    tmp_path: Path, place: str, settings: dict[str, Any], says: str
) -> None:
    (tmp_path / "n.conf").write_text(f"worker_processes {place};\nhttp {{ server {{ }} }}\n")
    variants = {"a": {"stack": "conf:n.conf", "settings": settings}, "b": {"stack": "nginx"}}
    with pytest.raises(UserError, match=says):
        resolved(tmp_path, variants, site="static")


def test_declared_settings_are_changed_like_others(tmp_path: Path) -> None:
    workers = {"type": "whole", "min": 1, "max": 16}
    variants = {
        "a": {"stack": CMD, "settings": {"workers": workers}},
        "b": {"stack": "nginx", "settings": {"workers": 3}},
    }
    draft, catalogue = resolved(tmp_path, variants, site="static")
    assert draft.check(catalogue).variants["b"].settings == {"workers": 3}


@pytest.mark.parametrize(
    ("stack", "setting", "says"),
    [
        (CMD, {"workers": {"type": "whole"}}, "min"),
        (CMD, {"port": {"type": "whole", "min": 1, "max": 2}}, "PORT has a meaning already"),
        (CMD, {"Workers": {"type": "whole", "min": 1, "max": 2}}, "Workers"),
        (CMD, {"mode": {"type": "word"}}, "type"),
        ("image:app", {"n": {"type": "switch"}}, "settings can be declared for a command"),
    ],
)
def test_a_declaration_that_is_wrong_is_reported(
    stack: str, setting: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=says):
        resolved(tmp_path, {"a": {"stack": stack, "settings": setting}, "b": {"stack": CMD}})


def test_the_catalogue_and_own_systems_stand_side_by_side(tmp_path: Path) -> None:
    draft, catalogue = resolved(
        tmp_path, {"a": {"stack": "nginx"}, "b": {"stack": CMD}}, site="static"
    )
    assert [*draft.check(catalogue).variants] == ["a", "b"]


def test_levels_of_a_stack_may_be_own_systems(tmp_path: Path) -> None:
    draft, catalogue = resolved(
        tmp_path,
        {"a": {"stack": CMD}, "b": {"stack": CMD}},
        factors={"variants.b.stack": [CMD, "cmd:other"]},
    )
    (levels,) = draft.check(catalogue).factors.values()
    assert all(level in catalogue.stacks for level in levels)


def test_an_experiment_of_the_catalogue_stays_as_it_is(tmp_path: Path) -> None:
    draft, _ = resolved(tmp_path, {"a": {"stack": "nginx"}, "b": {"stack": "node"}})
    assert draft.data["variants"]["a"] == {"stack": "nginx"}
    assert "site" not in draft.data


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_localhost_is_the_loopback_address_at_which_something_listens(
    tmp_path: Path, address: str
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:
        url = f"url:http://localhost:{listener.getsockname()[1]}"
        draft, catalogue = resolved(tmp_path, {"a": {"stack": url}, "b": {"stack": CMD}})
    stack = catalogue.stack(draft.check(catalogue).variants["a"].stack)
    own = stack.services["web"].service.own
    assert own is not None
    assert own.listens_at == address


def test_what_runs_already_is_not_in_a_network_of_ours(tmp_path: Path) -> None:
    variants = {"a": {"stack": "url:http://127.0.0.1:9"}, "b": {"stack": CMD}}
    with pytest.raises(UserError, match="isn't in the network of --testbed netns"):
        resolved(tmp_path, variants, testbed={"kind": "netns"})


@pytest.mark.parametrize(
    ("variant", "says"),
    [
        ({"stack": "nginx", "dir": "."}, "dir is for a system of your own"),
        ({"stack": CMD, "dir": "none"}, "there is no folder .*none"),
        ({"stack": CMD, "dir": 5}, "dir should be text"),
        ({"stack": CMD, "environment": {"1": "x"}}, "is no name of a variable"),
        ({"stack": CMD, "ready": "x"}, "a path starts with /"),
        ({"stack": CMD, "root": "."}, "root is for a configuration"),
        ({"stack": "url:http://127.0.0.1:9", "memory": "1GB"}, "memory can't be given to"),
        ({"stack": CMD, "dri": "."}, "unknown key variants.b.dri"),
        ({"stack": CMD, "settings": {"workers": 1}}, "has no setting 'workers'"),
        ({"stack": "cmx:x"}, "there is no stack 'cmx:x'"),
    ],
)
def test_what_makes_no_sense_is_reported(
    tmp_path: Path, variant: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        _checked(tmp_path, {"a": {"stack": CMD}, "b": variant})


def _checked(folder: Path, variants: dict[str, Any]) -> None:
    draft, catalogue = resolved(folder, variants, site="own")
    draft.check(catalogue)
