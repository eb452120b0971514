"""Nothing absurd is accepted: each is refused with its place, in words, before anything starts."""

import re
from pathlib import Path

import pytest

from webdyno.config import Catalogue, factors, read_overrides, read_settings
from webdyno.core.errors import UserError
from webdyno.core.paths import spell_out
from webdyno.core.request import may_be_compressed
from webdyno.core.sweep import plan_points


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue.load()


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("load.keepalive=true", "not true"),
        ("load.connections=true", "should be a whole number, not true"),
        ('load.connections="5"', "should be a whole number, not '5'"),
        ("load.connections=1.4", "should be a whole number, not 1.4"),
        ("load.connections=2147483648000", "1000000 or less"),
        ("load.keepalive=99999999999", "1000000000 or less"),
        ("load.idle_connections=-1", "0 or more"),
        ("load.timeout_s=1e18", "more than 0 s and at most 1 h"),
        ("load.paths=[]", "should have 1 or more entries, not an empty list"),
        ("load.paths=[1]", "should be text"),
        ("load.paths=['/a b']", "no spaces"),
        ("load.paths=['/{1..99999999}']", "100000 paths at most"),
        ("load.paths=['/{1..90000}', '/b/{1..90000}']", "more than 100000 in all"),
        ("load.headers.Upgrade=h2c", "leave it out of headers"),
        ("load.headers.Accept-Encoding=br", "can't look into bodies in the encoding br"),
        ("measure.slot_s=1e9", "at most 1 h"),
        ("measure.warmup_s=inf", "not inf"),
        ("measure.warmup_s=nan", "not nan"),
        ("measure.budget_s=1e300", "at most 720 h"),
        ("measure.precision=0", "from 0.01% to 99%"),
        ("measure.min_rounds=31", "more than max_rounds"),
        ("measure.slots_per_variant=1099511627776", "1000 or less"),
        ("measure.slots_per_variant=3", "multiple of 2"),
        ("measure.max_rounds=10000000", "10000 or less"),
        ("measure.decide_on=speed", "decide_on can't be 'speed'; it can be throughput_rps"),
        ("measure.seed=-1", "0 or more"),
        ("variants.nginx.settings.workers=inf", "not inf"),
        ("variants.nginx.settings.workers=nan", "not nan"),
        ("variants.nginx.settings.workers=[1]", "or text, not [1]"),
        ("variants.nginx.memory=-5", "from 1 B"),
        ("variants.nginx.cpus=true", "should be a number, not true"),
        ("testbed.server_cores=1.4", "should be a whole number, not 1.4"),
        ("load={connections=3}", "name the key inside the table"),
        ("load.connections=16\nload.keepalive=1", "line break"),
        ("load.connections=16 # many", "not '16 # many'"),
        ("load.connections=16]\nx=[1", "line break"),
        (f"title={'[' * 5000}{']' * 5000}", "should"),
        (f"load.connections={'9' * 5000}", "should be a whole number"),
        (f"{'a.' * 5000}b=1", "should look like KEY=VALUE"),
        ("title=a\tb", "control character"),
        ("generator=siege", "no load generator 'siege'; "),
        ("load=5", "load should be a table, not 5"),
        ("variants.nginx=5", "variants.nginx should be a table, not 5"),
        ("variants.nginx.stack=5", "variants.nginx.stack should be text, not 5"),
        ("requests=[1]", "requests.0 should be a table, not 1"),
    ],
)
def test_a_setting(catalogue: Catalogue, override: str, says: str) -> None:
    if override.startswith(f"title={'['}"):
        # what isn't TOML is text, and a title may be any text
        assert catalogue.experiment("static-hello", read_overrides([override])).title.startswith(
            "[[["
        )
        return
    with pytest.raises(UserError) as error:
        catalogue.experiment("static-hello", read_overrides([override]))
    assert says in str(error.value)
    assert "--set " in str(error.value)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["load.connections=1,1"], "the level 1 twice"),
        (["load.connections=1,2", "load.connections=4"], "about the same setting"),
        (["load.rate_per_s=10,20"], 'needs loop = "open"'),
        (["load.send_delay_budget_s=0,50us"], 'send_delay_budget_s needs loop = "open"'),
        (["load.send_delay_budget_s=0,11ms"], "from 0 s to 10 ms"),
        (["load.burst=1,50"], 'burst needs loop = "open"'),
        (["load.burst=0,50"], "1 or more"),
        (["load.rate_per_connection=1,2"], 'rate_per_connection needs loop = "open"'),
        (["load.connection_ramp_s=0,2h"], "from 0 s to 1 h"),
        (["testbed.keep_awake=true,false"], "for all or for none"),
        (["load.connections=" + ",".join(map(str, range(1, 1101)))], "1000 entries or fewer"),
        (
            [
                "load.connections=" + ",".join(map(str, range(1, 51))),
                "measure.seed=" + ",".join(map(str, range(50))),
            ],
            "2500 combinations",
        ),
        (
            ["generator=loadgen,ab", "measure.decide_on=throughput_rps,latency_p99_us"],
            "at generator",
        ),
    ],
)
def test_levels(catalogue: Catalogue, flags: list[str], says: str) -> None:
    with pytest.raises(UserError) as error:
        catalogue.experiment("static-hello", factors(flags))
    assert says in str(error.value)


def test_a_setting_given_twice_is_refused_whatever_flags_gave_it(catalogue: Catalogue) -> None:
    twice = [*read_overrides(["load.connections=1"]), *factors(["load.connections=2,4"])]
    with pytest.raises(UserError, match=r"--vary .*: --set load\.connections=1 is about the same"):
        catalogue.experiment("static-hello", twice)
    with pytest.raises(UserError, match="workers is set twice"):
        read_settings(catalogue.stack("nginx"), ["workers=1", "workers=2"])


def test_a_rate_that_is_varied_needs_no_other(catalogue: Catalogue) -> None:
    flags = [*read_overrides(["load.loop=open"]), *factors(["load.rate_per_s=100,200"])]
    experiment = catalogue.experiment("static-hello", flags)
    assert [plan.experiment.load.rate_per_s for plan in plan_points(experiment)] == [100, 200]


def test_a_budget_for_the_send_delay_is_written_with_its_unit(catalogue: Catalogue) -> None:
    rate = read_overrides(["load.loop=open", "load.rate_per_s=9", "load.send_delay_budget_s=200us"])
    load = catalogue.experiment("static-hello", rate).load_of("nginx")
    assert load.send_delay_budget_s == pytest.approx(0.0002)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["load.rate_per_s=9"], "both give the rate"),
        (["load.arrival_unit=connection", "load.keepalive=2"], 'omit arrival_unit = "connection"'),
        (["load.protocol=h2c", "load.streams=5"], "omit streams"),
        (["load.send_delay_budget_s=1ms"], "omit send_delay_budget_s"),
        (["load.connection_ramp_s=1s"], 'connection_ramp_s needs loop = "closed"'),
        (["load.burst=1001"], "bursts of 1,001 come every 8 s"),
    ],
)
def test_a_rate_of_each_connection_goes_with_one_request_at_a_time(
    catalogue: Catalogue, more: list[str], says: str
) -> None:
    rate = ["load.loop=open", "load.rate_per_connection=2"]
    with pytest.raises(UserError, match=re.escape(says)):
        catalogue.experiment("static-hello", read_overrides([*rate, *more]))
    load = catalogue.experiment("static-hello", read_overrides(rate)).load_of("nginx")
    assert load.offered_rps == 2 * load.connections


def test_a_ramp_of_connections_goes_with_slots_that_a_time_ends(catalogue: Catalogue) -> None:
    counted = read_overrides(["load.connection_ramp_s=1s", "load.count=100"])
    with pytest.raises(UserError, match="may end before it"):
        catalogue.experiment("static-hello", counted)


def test_what_is_set_is_not_varied_any_more(catalogue: Catalogue) -> None:
    experiment = catalogue.experiment("heroku-idle", read_overrides(["load.idle_connections=5"]))
    assert experiment.factors == {}
    assert experiment.load.idle_connections == 5


def test_a_setting_that_no_request_feels_is_refused_where_variants_differ_by_it(
    catalogue: Catalogue,
) -> None:
    compressing = "variants.nginx.settings.gzip=true"
    with pytest.raises(UserError, match=r"gzip makes no difference .* without Accept-Encoding"):
        catalogue.experiment("static-hello", read_overrides([compressing]))
    with pytest.raises(UserError, match="gzip makes no difference"):
        catalogue.experiment("static-hello", factors(["variants.nginx.settings.gzip=false,true"]))
    accepted = read_overrides([compressing, "load.headers.Accept-Encoding=gzip"])
    assert may_be_compressed(catalogue.experiment("static-hello", accepted).load.headers)
    both = read_overrides([compressing, "variants.apache-event.settings.gzip=true"])
    assert catalogue.experiment("static-hello", both).variants["nginx"].settings == {"gzip": True}


def test_ab_is_not_asked_for_what_http_1_0_servers_leave_out(catalogue: Catalogue) -> None:
    with pytest.raises(UserError, match=r"generator ab speaks HTTP/1\.0"):
        catalogue.experiment(
            "static-hello", read_overrides(["generator=ab", "load.headers.Accept-Encoding=gzip"])
        )


HEAD = 'title = "t"\nquestion = "q"\nsite = "static"\n'
TWO = '[variants.a]\nstack = "nginx"\n[variants.b]\nstack = "nginx"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + '[variants.a]\nstack = "nginx"\n', "needs two variants at least"),
        (HEAD + '[variants.""]\nstack = "nginx"\n' + TWO, "is no name"),
        (HEAD + '[variants."a\\nb"]\nstack = "nginx"\n' + TWO, "line break"),
        (HEAD + '[variants."a\\u0000b"]\nstack = "nginx"\n' + TWO, "control character"),
        (HEAD + f'[variants.{"x" * 300}]\nstack = "nginx"\n' + TWO, "too long a name"),
        (HEAD.replace('"t"', '"\\u001b[2J"') + TWO, "control character"),
        (HEAD + TWO + "[load]\nkeepalive = true\n", "mine.toml:9: load.keepalive should"),
        (HEAD + "factors = 5\n" + TWO, "factors should be a table, not 5"),
        ("x = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("x = " + "{a=" * 5000 + "1" + "}" * 5000, "nested too deeply"),
        (
            HEAD + "".join(f'[variants.a{it}]\nstack = "nginx"\n' for it in range(101)),
            "an experiment has 100 variants at most, and this one 101",
        ),
        ("variants = 5\n" + HEAD, "variants should be a table, not 5"),
        ("x = '" + "y" * 5_000_000 + "'", "larger than 4 MiB"),
    ],
)
def test_a_file(catalogue: Catalogue, tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        catalogue.experiment(str(path))
    assert says in str(error.value)
    assert "mine.toml" in str(error.value)


def test_a_byte_order_mark_is_no_mistake(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + (HEAD + TWO).encode())
    assert catalogue.experiment(str(path)).title == "t"


def test_a_file_in_another_encoding_is_reported_with_its_line(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(HEAD.encode() + b'note = "caf\xe9"\n')
    with pytest.raises(UserError, match=r"mine\.toml:4: is not UTF-8"):
        catalogue.experiment(str(path))


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("/hällo.txt", "/h%C3%A4llo.txt"),
        ("/é", "/%C3%A9"),
        ("/%C3%A9?a=b&c=%20", "/%C3%A9?a=b&c=%20"),
        ("/100%", "/100%25"),
        ("/é/{1..3}.txt", "/%C3%A9/{1..3}.txt"),
    ],
)
def test_paths_in_any_script_are_encoded(
    catalogue: Catalogue, tmp_path: Path, written: str, asked: str
) -> None:
    assert spell_out(written) == spell_out(asked)
    assert spell_out(asked)[0].isascii()
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + f'load.paths = ["{written}"]\n' + TWO, encoding="utf-8")
    assert catalogue.experiment(str(path)).load.paths == [written]


def test_defaults_are_the_same_in_files_and_duels(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(HEAD.replace("static", "wordpress") + TWO.replace("nginx", "nginx-phpfpm"))
    experiment = catalogue.experiment(str(path))
    suggested = catalogue.site("wordpress").suggests
    assert experiment.load.paths == [catalogue.site("wordpress").ready_path]
    assert experiment.load.connections == suggested["load"]["connections"]
    path.write_text(HEAD + TWO)
    assert catalogue.experiment(str(path)).load.paths == ["/hello.txt"]


def test_what_is_no_table_is_reported_before_what_is_set_in_it(catalogue: Catalogue) -> None:
    with pytest.raises(UserError) as error:
        catalogue.experiment("static-hello", read_overrides(["variants=5", "nginx.workers=2"]))
    assert str(error.value) == "--set variants=5: variants should be a table, not 5"
