"""Experiments: overrides, and messages about what doesn't exist or fit."""

from pathlib import Path

import pytest

from webdyno.definitions import (
    Catalogue,
    CommandLine,
    factors,
    read_experiment,
    read_knobs,
    settings,
)
from webdyno.model.errors import UserError


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue.load()


def test_stack_and_generator_speak_the_same_protocol(catalogue: Catalogue) -> None:
    with pytest.raises(UserError, match="stack redis speaks redis, generator ab speaks http"):
        catalogue.experiment("hdm-redis", settings(["generator=ab"]))


def test_every_experiment_of_the_catalogue_is_right(catalogue: Catalogue) -> None:
    for name in catalogue.experiments:
        assert catalogue.experiment(name).arms


def test_overrides_reach_their_keys(catalogue: Catalogue) -> None:
    experiment = catalogue.experiment(
        "static-hello",
        settings(
            [
                "load.connections=16",
                'arms.apache-event.paths=["/missing.txt"]',
                "arms.nginx.knobs.workers=1",
                "measure.budget_s=30",
                "load.keepalive=never",
                "arms.third.stack=apache-worker",
            ]
        ),
    )
    assert experiment.load.connections == 16
    assert experiment.arms["apache-event"].paths == ["/missing.txt"]
    assert experiment.arms["nginx"].knobs == {"workers": 1}
    assert experiment.measure.budget_s == 30
    assert experiment.load.keepalive == "never"
    assert experiment.arms["third"].stack == "apache-worker"


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("load.conections=3", "unknown key load.conections; did you mean connections"),
        ("load.connections=0", "load.connections should be 1 or more, not 0"),
        ("load.keepalive=maybe", "should be 'always' or 'never'"),
        ("arms.nginx.stack=ngnix", "no stack 'ngnix'; did you mean nginx"),
        ("arms.apache.paths=['/x']", "no arm 'apache'; did you mean apache-event?"),
        ("arms.nginx.knobs.worker=1", "no knob 'worker'; did you mean workers"),
        ("arms.nginx.knobs.workers=0", "workers should be between 1 and 1024, not 0"),
        (
            "arms.nginx.knobs.workers=many",
            "workers should be a whole number from 1 to 1024, not 'many'",
        ),
        ("arms.nginx.knobs.sendfile=1", "sendfile should be true or false, not 1"),
        ("arms.nginx=5", "arms.nginx should be"),
        ("title.x=3", "title holds a value"),
        ("site=statc", "no site 'statc'; did you mean static?"),
        ("load.paths=['x']", "a path starts with /"),
        ("workers", "should look like KEY=VALUE"),
    ],
)
def test_a_wrong_override_is_named_with_a_fix(
    catalogue: Catalogue, override: str, says: str
) -> None:
    with pytest.raises(UserError) as error:
        catalogue.experiment("static-hello", settings([override]))
    assert str(error.value).startswith(f"--set {override}: ")
    assert says in str(error.value)


def test_factors_are_varied_at_every_level(catalogue: Catalogue) -> None:
    varied = factors(["load.connections=1,2", "arms.nginx.knobs.workers=1,2,3"])
    experiment = catalogue.experiment("static-hello", varied)
    assert experiment.factors == {
        "load.connections": [1, 2],
        "arms.nginx.knobs.workers": [1, 2, 3],
    }


@pytest.mark.parametrize(
    ("factor", "says"),
    [
        ("load.connections=1,0", "load.connections should be 1 or more, not 0"),
        ("load.conections=1,2", "unknown key load.conections; did you mean connections"),
        (
            "arms.nginx.knobs.workers=1,many",
            "workers should be a whole number from 1 to 1024, not 'many'",
        ),
        ("arms.nginx.stack=nginx,ngnix", "no stack 'ngnix'; did you mean nginx"),
        ("load.connections", "should look like KEY=LEVEL,LEVEL"),
        ("load.connections=1,,2", "should look like KEY=LEVEL,LEVEL"),
    ],
)
def test_a_wrong_level_is_named_with_a_fix(catalogue: Catalogue, factor: str, says: str) -> None:
    with pytest.raises(UserError) as error:
        catalogue.experiment("static-hello", factors([factor]))
    assert str(error.value).startswith(f"--vary {factor}: ")
    assert says in str(error.value)


def test_a_mistake_in_a_file_is_named_with_its_line(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'title = "t"\nquestion = "q"\nsite = "static"\n\n'
        '[arms.a]\nstack = "nginx"\n\n[arms.b]\nstack = "nginx"\nknobs.workers = 0.5\n'
    )
    with pytest.raises(UserError, match=r"mine\.toml:10: workers should be a whole number"):
        catalogue.experiment(str(path))


def test_an_unknown_experiment_gets_the_nearest_names(catalogue: Catalogue) -> None:
    with pytest.raises(UserError, match="did you mean static-hello"):
        catalogue.experiment("statichello")


def test_knobs_of_the_command_line(catalogue: Catalogue) -> None:
    apache = catalogue.stack("apache-prefork")
    assert read_knobs(apache, ["children=5", "sendfile=false"]) == {
        "children": 5,
        "sendfile": False,
    }
    with pytest.raises(UserError, match="no knob 'mpm'"):  # the stack fixes it
        read_knobs(apache, ["mpm=event"])


def test_arms_may_differ_in_site_load_and_bench(catalogue: Catalogue) -> None:
    changes = [
        "arms.nginx.load.connections=3",
        "arms.nginx.load.slow_readers.connections=2",
        "load.slow_readers.connections=1",
        "load.slow_readers.bytes_per_s=1KB",
        "arms.nginx.bench.kind=netns",
        "arms.nginx.bench.link=10mbit",
    ]
    experiment = catalogue.experiment("static-hello", settings(changes))
    apache, nginx = (experiment.load_of(arm) for arm in ("apache-event", "nginx"))
    assert (apache.connections, nginx.connections) == (64, 3)
    assert nginx.paths == apache.paths == ["/hello.txt"]
    assert nginx.slow_readers is not None
    assert (nginx.slow_readers.connections, nginx.slow_readers.bytes_per_s) == (2, 1000)
    assert experiment.bench_of("nginx").link == 10_000_000
    assert experiment.bench_of("apache-event") == experiment.bench


def test_an_arm_with_a_site_of_its_own_asks_for_that_sites_first_path(catalogue: Catalogue) -> None:
    arms = {
        "php": {"stack": "apache-prefork-modphp", "site": "frontpage"},
        "static": {"stack": "apache-prefork-modphp"},
        "other": {"stack": "apache-prefork-modphp", "site": "frontpage", "paths": ["/style.css"]},
    }
    told = {"title": "t", "question": "q?", "site": "hello-php", "arms": arms}
    experiment = read_experiment(CommandLine(told, {}), [], catalogue)
    asked = {arm: experiment.load_of(arm).paths for arm in arms}
    first = {name: [catalogue.site(name).ready_path] for name in ("frontpage", "hello-php")}
    assert asked == {
        "php": first["frontpage"],
        "static": first["hello-php"],
        "other": ["/style.css"],
    }


def test_a_load_generator_may_have_a_load_of_its_own(catalogue: Catalogue) -> None:
    counted = settings(["load_with.ab.requests=500", "generator=ab"])
    assert catalogue.experiment("static-hello", counted).load_of("nginx").requests == 500
    by_time = catalogue.experiment("static-hello", settings(["load_with.ab.requests=500"]))
    assert by_time.load_of("nginx").requests is None


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("arms.nginx.load.conections=3", "unknown key conections; did you mean connections"),
        ("arms.nginx.load.connections=0", "connections should be 1 or more, not 0"),
        ("arms.nginx.load.rate_per_s=5", "rate_per_s needs loop"),
        ("arms.nginx.load.loop=open", "Give all arms the same loop"),
        ("arms.nginx.bench.link=10mbit", "need the bench with a network of its own"),
        ("load_with.abb.requests=5", "no load generator 'abb'"),
        ("load_with.loadgen.requests=0", "requests should be 1 or more, not 0"),
    ],
)
def test_what_an_arm_cannot_have_of_its_own_is_told_with_its_place(
    catalogue: Catalogue, override: str, says: str
) -> None:
    with pytest.raises(UserError) as told:
        catalogue.experiment("static-hello", settings([override]))
    assert says in str(told.value)
    assert f"--set {override}" in str(told.value)


def test_an_arms_paths_are_given_once(catalogue: Catalogue) -> None:
    twice = ['arms.nginx.paths=["/a"]', 'arms.nginx.load.paths=["/b"]']
    with pytest.raises(UserError, match="give one of them"):
        catalogue.experiment("static-hello", settings(twice))
