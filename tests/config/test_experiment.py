"""Experiments: overrides, and messages about what doesn't exist or fit."""

from pathlib import Path

import pytest

from webdyno.config import (
    Catalogue,
    CommandLine,
    factors,
    read_experiment,
    read_overrides,
    read_settings,
)
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue.load()


def test_streams_have_more_time_than_other_responses(catalogue: Catalogue) -> None:
    streams = CommandLine(
        {
            "title": "Tokens",
            "question": "Which is faster?",
            "site": "chat",
            "variants": {"old": {"stack": "model-server"}, "new": {"stack": "model-server"}},
        },
        {},
    )

    def timeout_s(*overrides: str) -> float:
        return read_experiment(streams, read_overrides(overrides), catalogue).load.timeout_s

    assert timeout_s() == 60
    assert timeout_s("load.timeout_s=7s") == 7
    assert timeout_s('load.paths=["/health"]') == 5


def test_goodput_needs_streams_and_limits(catalogue: Catalogue) -> None:
    plain = read_overrides(['load.goodput=["ttft<1s"]'])
    with pytest.raises(UserError, match="counts streams"):
        catalogue.experiment("static-hello", plain)
    without = read_overrides(["measure.decide_on=goodput_rps"])
    with pytest.raises(UserError, match=r"needs load\.goodput"):
        catalogue.experiment("static-hello", without)


def test_stack_and_generator_speak_the_same_protocol(catalogue: Catalogue) -> None:
    with pytest.raises(UserError, match="stack redis speaks redis, generator ab speaks http"):
        catalogue.experiment("hdm-redis", read_overrides(["generator=ab"]))


def test_every_experiment_of_the_catalogue_is_right(catalogue: Catalogue) -> None:
    for name in catalogue.experiments:
        assert catalogue.experiment(name).variants


def test_overrides_reach_their_keys(catalogue: Catalogue) -> None:
    experiment = catalogue.experiment(
        "static-hello",
        read_overrides(
            [
                "load.connections=16",
                'variants.apache-event.paths=["/missing.txt"]',
                "variants.nginx.settings.workers=1",
                "measure.budget_s=30",
                "load.keepalive=never",
                "variants.third.stack=apache-worker",
            ]
        ),
    )
    assert experiment.load.connections == 16
    assert experiment.variants["apache-event"].paths == ["/missing.txt"]
    assert experiment.variants["nginx"].settings == {"workers": 1}
    assert experiment.measure.budget_s == 30
    assert experiment.load.keepalive == "never"
    assert experiment.variants["third"].stack == "apache-worker"


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("load.conections=3", "unknown key load.conections; did you mean connections"),
        ("load.connections=0", "load.connections should be 1 or more, not 0"),
        ("load.rate_per_s=1e9", "load.rate_per_s should be 100000000 or less, not"),
        ("load.keepalive=maybe", "should be 'always' or 'never'"),
        ("variants.nginx.stack=ngnix", "no stack 'ngnix'; did you mean nginx"),
        ("variants.apache.paths=['/x']", "no variant 'apache'; did you mean apache-event?"),
        ("variants.nginx.settings.worker=1", "no setting 'worker'; did you mean workers"),
        ("variants.nginx.settings.workers=0", "workers should be between 1 and 1024, not 0"),
        (
            "variants.nginx.settings.workers=many",
            "workers should be a whole number from 1 to 1024, not 'many'",
        ),
        ("variants.nginx.settings.sendfile=1", "sendfile should be true or false, not 1"),
        ("variants.nginx=5", "variants.nginx should be"),
        ("title.x=3", "title holds a value"),
        ("ignore=['a', '((']", "'((' is no regular expression"),
        ("site=retwi", "no site 'retwi'; did you mean retwis?"),
        ("load.paths=['x']", "a path starts with /"),
        ("workers", "should look like KEY=VALUE"),
    ],
)
def test_a_wrong_override_is_named_with_a_fix(
    catalogue: Catalogue, override: str, says: str
) -> None:
    with pytest.raises(UserError) as error:
        catalogue.experiment("static-hello", read_overrides([override]))
    assert str(error.value).startswith(f"--set {override}: ")
    assert says in str(error.value)


def test_factors_are_varied_at_every_level(catalogue: Catalogue) -> None:
    varied = factors(["load.connections=1,2", "variants.nginx.settings.workers=1,2,3"])
    experiment = catalogue.experiment("static-hello", varied)
    assert experiment.factors == {
        "load.connections": [1, 2],
        "variants.nginx.settings.workers": [1, 2, 3],
    }


@pytest.mark.parametrize(
    ("factor", "says"),
    [
        ("load.connections=1,0", "load.connections should be 1 or more, not 0"),
        ("load.conections=1,2", "unknown key load.conections; did you mean connections"),
        (
            "variants.nginx.settings.workers=1,many",
            "workers should be a whole number from 1 to 1024, not 'many'",
        ),
        ("variants.nginx.stack=nginx,ngnix", "no stack 'ngnix'; did you mean nginx"),
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
        '[variants.a]\nstack = "nginx"\n\n[variants.b]\nstack = "nginx"\nsettings.workers = 0.5\n'
    )
    with pytest.raises(UserError, match=r"mine\.toml:10: workers should be a whole number"):
        catalogue.experiment(str(path))


def test_an_unknown_experiment_gets_the_nearest_names(catalogue: Catalogue) -> None:
    with pytest.raises(UserError, match="did you mean static-hello"):
        catalogue.experiment("statichello")


def test_settings_of_the_command_line(catalogue: Catalogue) -> None:
    apache = catalogue.stack("apache-prefork")
    assert read_settings(apache, ["children=5", "sendfile=false"]) == {
        "children": 5,
        "sendfile": False,
    }
    with pytest.raises(UserError, match="no setting 'mpm'"):  # the stack fixes it
        read_settings(apache, ["mpm=event"])


def test_variants_may_differ_in_site_load_and_testbed(catalogue: Catalogue) -> None:
    changes = [
        "variants.nginx.load.connections=3",
        "variants.nginx.load.slow_readers.connections=2",
        "load.slow_readers.connections=1",
        "load.slow_readers.bytes_per_s=1KB",
        "variants.nginx.testbed.kind=netns",
        "variants.nginx.testbed.link=10mbit",
    ]
    experiment = catalogue.experiment("static-hello", read_overrides(changes))
    apache, nginx = (experiment.load_of(variant) for variant in ("apache-event", "nginx"))
    assert (apache.connections, nginx.connections) == (64, 3)
    assert nginx.paths == apache.paths == ["/hello.txt"]
    assert nginx.slow_readers is not None
    assert (nginx.slow_readers.connections, nginx.slow_readers.bytes_per_s) == (2, 1000)
    assert experiment.testbed_of("nginx").link == 10_000_000
    assert experiment.testbed_of("apache-event") == experiment.testbed


def test_a_variant_with_a_site_of_its_own_asks_for_that_sites_first_path(
    catalogue: Catalogue,
) -> None:
    variants = {
        "php": {"stack": "apache-prefork-modphp", "site": "frontpage"},
        "static": {"stack": "apache-prefork-modphp"},
        "other": {"stack": "apache-prefork-modphp", "site": "frontpage", "paths": ["/style.css"]},
    }
    reported = {"title": "t", "question": "q?", "site": "hello-php", "variants": variants}
    experiment = read_experiment(CommandLine(reported, {}), [], catalogue)
    asked = {variant: experiment.load_of(variant).paths for variant in variants}
    first = {name: [catalogue.site(name).ready_path] for name in ("frontpage", "hello-php")}
    assert asked == {
        "php": first["frontpage"],
        "static": first["hello-php"],
        "other": ["/style.css"],
    }


def test_a_load_generator_may_have_a_load_of_its_own(catalogue: Catalogue) -> None:
    counted = read_overrides(["load_with.ab.count=500", "generator=ab"])
    assert catalogue.experiment("static-hello", counted).load_of("nginx").count == 500
    by_time = catalogue.experiment("static-hello", read_overrides(["load_with.ab.count=500"]))
    assert by_time.load_of("nginx").count is None


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("variants.nginx.load.conections=3", "unknown key conections; did you mean connections"),
        ("variants.nginx.load.connections=0", "connections should be 1 or more, not 0"),
        ("variants.nginx.load.rate_per_s=5", "rate_per_s needs loop"),
        ("variants.nginx.load.loop=open", "Give all variants the same loop"),
        ("variants.nginx.testbed.link=10mbit", "need the testbed with a network of its own"),
        ("variants.nginx.testbed.keep_awake=true", "for all or for none"),
        ("load_with.abb.count=5", "no load generator 'abb'"),
        ("load_with.loadgen.count=0", "count should be 1 or more, not 0"),
    ],
)
def test_what_a_variant_cannot_have_of_its_own_is_reported_with_its_place(
    catalogue: Catalogue, override: str, says: str
) -> None:
    with pytest.raises(UserError) as reported:
        catalogue.experiment("static-hello", read_overrides([override]))
    assert says in str(reported.value)
    assert f"--set {override}" in str(reported.value)


def test_a_variants_paths_are_given_once(catalogue: Catalogue) -> None:
    twice = ['variants.nginx.paths=["/a"]', 'variants.nginx.load.paths=["/b"]']
    with pytest.raises(UserError, match="give one of them"):
        catalogue.experiment("static-hello", read_overrides(twice))


def on_site(catalogue: Catalogue, site: str, **more: object) -> Experiment:
    reported = {"title": "t", "question": "q?", "site": site, **more}
    return read_experiment(CommandLine(reported, {}), [], catalogue)


def two(stack: str) -> dict[str, object]:
    return {"one": {"stack": stack}, "two": {"stack": stack, "settings": {"gzip": False}}}


def test_a_site_suggests_settings_of_stacks_and_paths(catalogue: Catalogue) -> None:
    experiment = on_site(catalogue, "static-20", variants=two("nginx"))
    assert experiment.variants["one"].settings == {"gzip": True}
    assert experiment.variants["two"].settings == {"gzip": False}
    assert len(experiment.load.paths) == 20
    assert experiment.load.headers == {"Accept-Encoding": "gzip"}
    alone = on_site(catalogue, "static-20", variants=two("nginx"), load={"paths": ["/robots.txt"]})
    assert alone.load.paths == ["/robots.txt"]


def test_a_site_has_requests_unless_others_are_named(catalogue: Catalogue) -> None:
    variants = {name: {"stack": "uvicorn-starlette"} for name in ("one", "two")}
    asked = on_site(catalogue, "crud", variants=variants).requests
    assert [(it.method, it.weight) for it in asked] == [("GET", 6), ("GET", 2), ("PUT", 2)]
    (sent,) = on_site(catalogue, "upload", variants=variants).requests
    assert len(sent.body or "") == 65_536
    one = on_site(catalogue, "crud", variants=variants, load={"paths": ["/items/7"]})
    assert not one.requests
    assert one.load.paths == ["/items/7"]
    own = [{"path": "/items/8"}]
    assert len(on_site(catalogue, "crud", variants=variants, requests=own).requests) == 1
