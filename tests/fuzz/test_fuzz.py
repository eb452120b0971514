"""Whatever is written: no traceback, no hang, nothing absurd accepted.

Experiments, flags and catalogues: every setting with every nasty value, and mixed cases. The other
files of this folder do the same to other inputs. `./dyno test` runs a share of all that, and
`./dyno test --full tests/fuzz` all; WEBDYNO_FUZZ_SEED=7, or 1-9, makes other cases.
"""

import copy
import json
import math
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from random import Random
from typing import Any

import pytest
import tomli_w

from fuzz import nasty
from fuzz.driver import Said, check_end, each_case, no_hang, says, seeds, sweep
from variants import further
from webdyno.config.catalogue import BUILT_IN, Catalogue
from webdyno.core.errors import Exit, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load
from webdyno.core.measure import Measure
from webdyno.core.sweep import plan_points
from webdyno.core.variant import Variant, key_parts

PROCESSES = 2

KEYS = [
    key
    for model in (Experiment, Load, Measure, Variant)
    for key in model.model_fields
    if key not in {"title", "question"}
]
RICH: dict[str, Any] = {
    "title": "t",
    "question": "q?",
    "site": "static",
    "generator": "loadgen",
    "load": {
        "paths": ["/hello.txt", "/100.txt"],
        "zipf": 0.5,
        "headers": {"Accept-Encoding": "gzip"},
        "loop": "closed",
        "think_s": 0.1,
        "connections": 8,
        "keepalive": 10,
        "timeout_s": "2s",
        "idle_connections": 3,
        "slow_readers": {"connections": 2, "bytes_per_s": "1KB"},
    },
    "measure": {
        "decide_on": "throughput_rps",
        "slot_s": 0.5,
        "slots_per_variant": 4,
        "warmup_s": 1,
        "precision": "2%",
        "budget_s": 90.0,
        "min_rounds": 6,
        "max_rounds": 30,
        "seed": 5,
    },
    "testbed": {"kind": "netns", "server_cores": 1, "link": "1gbit", "delay": "1ms", "loss": 0.001},
    "variants": {
        "a": {"stack": "nginx", "settings": {"workers": 1, "gzip": True}, "memory": "64MB"},
        "b": {"stack": "apache-event", "site": "static", "paths": ["/hello.txt", "/é"], "cpus": 1},
    },
    "factors": {"load.connections": [1, 2], "variants.a.settings.workers": [1, 2]},
}


def check_sense(experiment: Experiment) -> None:
    """What holds of every experiment that is accepted, said once more without the models."""
    data = experiment.model_dump()
    for where in nasty.places(data):
        here: Any = data
        for part in where:
            here = here[part]
        if isinstance(here, float):
            assert math.isfinite(here), where
        if isinstance(here, float) and str(where[-1]).endswith("_s"):
            assert 0 <= here <= 2_592_000, (where, here)
        if isinstance(here, int) and where[-1] != "seed":
            assert abs(here) <= 10**12, (where, here)
    measure = experiment.measure
    assert 6 <= measure.min_rounds <= measure.max_rounds <= 100_000
    assert (measure.slots_per_variant or 2) <= 10_000
    assert len(experiment.variants) >= (1 if experiment.capacity else 2)
    for name in (*experiment.variants, experiment.title, experiment.question):
        assert name.isprintable()
    assert all(name.strip() for name in experiment.variants)
    for levels in experiment.factors.values():
        assert len(levels) == len({json.dumps(level) for level in levels})
    points = plan_points(experiment)
    assert 1 <= len(points) <= 10_000


def check_kept(experiment: Experiment, where: nasty.Path, written: object) -> None:
    """What is accepted is what was written: true is not 1, 1.4 is not 1, nothing is dropped."""
    if isinstance(written, bool | int | float):
        found = looked_up(experiment.model_dump(), where)
        assert found == written, (where, written, found)
        assert isinstance(found, bool) == isinstance(written, bool), (where, written, found)


CATALOGUE = Catalogue.load()


def reads(path: Path) -> Said:
    """What `webdyno run FILE` does first, without the time that its command line takes."""
    with no_hang():
        try:
            experiment = CATALOGUE.experiment(str(path))
        except UserError as error:
            return Said(Exit.USER_ERROR, f"webdyno: {error}", None)
    return Said(Exit.OK, "", experiment)


def looked_up(data: Any, where: nasty.Path) -> object:  # noqa: ANN401
    """Give what stands at a place, None if nothing does."""
    for part in where:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data


@sweep(quick=60, whole=400)
def test_experiments(tmp_path: Path, seed: int, cases: range) -> None:
    files = sorted((BUILT_IN / "experiments").glob("*.toml"))
    bases = [tomllib.loads(path.read_text(encoding="utf-8")) for path in files]

    def one(case: int) -> None:
        random = Random(f"{seed}/experiment/{case}")
        data = copy.deepcopy(RICH if random.random() < 0.6 else random.choice(bases))
        where = [nasty.changed(data, random, KEYS) for _ in range(random.choice([1, 1, 1, 2, 4]))]
        text = tomli_w.dumps(data)
        bent = random.random() < 0.2
        path = tmp_path / "mine.toml"
        path.write_text(nasty.bent(text, random) if bent else text, errors="surrogatepass")
        said = says(["run", str(path), "--full"]) if case % 8 == 0 else reads(path)
        check_end(said)
        if said.experiment:
            check_sense(said.experiment)
            if not bent and len(where) == 1 and where[0][0] != "factors":
                check_kept(said.experiment, where[0], looked_up(data, where[0]))
        else:
            assert said.code == Exit.USER_ERROR, said
            assert "mine.toml" in said.printed, said

    each_case(seed, cases, one)


@pytest.mark.parametrize("step", [5, further(1)])
def test_every_setting_with_everything(tmp_path: Path, step: int) -> None:
    """Each value of an experiment, replaced by each nasty one, or every fifth of them."""
    rich = {key: RICH[key] for key in RICH if key != "factors"}
    settings = [
        (where, wrong)
        for where in nasty.places(rich)
        for wrong in (*nasty.NUMBERS, *nasty.OTHERS, *nasty.WORDS)
    ]
    path = tmp_path / "mine.toml"

    def one(case: int) -> None:
        where, wrong = settings[case]
        data = copy.deepcopy(rich)
        around: Any = data
        for part in where[:-1]:
            around = around[part]
        around[where[-1]] = wrong
        path.write_text(tomli_w.dumps(data))
        said = reads(path)
        check_end(said)
        if said.experiment:
            check_sense(said.experiment)
            check_kept(said.experiment, where, wrong)

    each_case(0, range(0, len(settings), step), one)


SETTINGS = [
    *(f"load.{key}" for key in Load.model_fields),
    *(f"measure.{key}" for key in Measure.model_fields),
    *(f"testbed.{key}" for key in ("kind", "server_cores", "link", "delay", "loss")),
    *(f"variants.nginx.{key}" for key in Variant.model_fields),
    *(
        "variants.nginx.settings.workers",
        "variants.nginx.settings.gzip",
        "variants.nginx.settings.sendfile",
    ),
    *(
        "load.slow_readers.connections",
        "load.headers.Cookie",
        "title",
        "site",
        "generator",
        "variants",
    ),
    *("variants.x.stack", "factors", "nothing", "", ".", "a.b.c", 'variants."nginx".cpus', "load."),
]
PLAUSIBLE = {
    "load.connections": ["1", "4", "16"],
    "load.zipf": ["0.5", "1"],
    "measure.min_rounds": ["6", "40"],
    "measure.max_rounds": ["7", "50"],
    "variants.nginx.settings.workers": ["1", "2"],
}
"""Settings that are right by themselves, and wrong only together."""
FLAGS_WITH_VALUES = [
    *("--time", "--precision", "--generator", "--testbed", "--server-cores", "--link", "--delay"),
    "--loss",
]
OTHER_COMMANDS = [
    ["up", "nginx", "--set", "{}"],
    ["up", "nginx", "--port", "{}"],
    ["up", "{}"],
    ["up", "nginx", "--site", "{}"],
    ["compare", "nginx", "apache-event", "--path", "{}"],
    ["compare", "nginx", "{}"],
    ["compare", "nginx", "nginx", "--site", "{}"],
    ["doctor", "--calibrate", "--connections", "{}"],
    ["doctor", "--calibrate", "--body", "{}"],
    ["doctor", "--calibrate", "--time", "{}"],
    ["list", "{}"],
    ["run", "{}"],
    ["run", "static-hello", "--catalog", "{}"],
    ["audit", "{}"],
    ["report", "{}"],
    ["run", "study:{}"],
    ["run", "study:deathmatch", "--time", "{}"],
    ["traffic", "{}"],
    *(
        ["traffic", "nothing.log", flag, "{}"]
        for flag in ("--speed", "--from", "--to", "--methods", "--loop", "-o", "--twin")
    ),
    ["{}"],
]


def flag_value(random: Random) -> str:
    """A value as a flag can have it: an argument holds no NUL."""
    found = nasty.value(random)
    text = found if isinstance(found, str) else json.dumps(found).replace("Infinity", "inf")
    return text.replace("\0", "\ufffd")


@sweep(quick=60, whole=300)
def test_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, cases: range) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def one(case: int) -> None:
        random = Random(f"{seed}/flags/{case}")
        given: list[tuple[str, str]] = []
        if random.random() < 0.25:
            words = [word.format(flag_value(random)) for word in random.choice(OTHER_COMMANDS)]
        else:
            words = ["run", "static-hello"]
            for _ in range(random.choice([1, 1, 2, 3])):
                kind = random.random()
                if kind < 0.4:
                    key = random.choice(list(PLAUSIBLE))
                    several = random.choices(PLAUSIBLE[key], k=random.choice([1, 1, 2]))
                    words += [
                        "--vary" if len(several) > 1 else "--set",
                        f"{key}={','.join(several)}",
                    ]
                    given.append((key, several[0] if len(several) == 1 else ""))
                elif kind < 0.6:
                    key, text = random.choice(SETTINGS), flag_value(random)
                    words += ["--set", f"{key}={text}"]
                    given.append((key, text))
                elif kind < 0.8:
                    key = random.choice(SETTINGS)
                    levels = ",".join(flag_value(random) for _ in range(random.choice([1, 2, 3])))
                    words += ["--vary", f"{key}={levels}"]
                    given.append((key, ""))
                else:
                    words += [random.choice(FLAGS_WITH_VALUES), flag_value(random)]
        said = says(words)
        check_end(said)
        if said.experiment is None:
            return
        check_sense(said.experiment)
        keys = [key for key, _ in given]
        assert len(keys) == len(set(keys)), f"given twice and accepted: {words}"
        for key, text in given:
            try:
                written = json.loads(text)
            except ValueError:
                continue
            check_kept(said.experiment, key_parts(key), written)
        if "--server-cores" in words:
            cores = words[words.index("--server-cores") + 1]
            assert str(said.experiment.testbed.server_cores) == cores.strip(), words

    each_case(seed, cases, one)


@sweep(quick=20, whole=150)
def test_catalogues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, cases: range
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    mine = tmp_path / "mine"
    parts = [
        *(f"services/{name}" for name in ("nginx", "apache", "mariadb")),
        *("stacks/nginx", "stacks/nginx-phpfpm", "sites/static", "sites/wordpress"),
    ]
    for part in parts:
        shutil.copytree(BUILT_IN / part, mine / part)
    files = sorted(mine.glob("*/*/s*.toml"))
    good = {path: path.read_text(encoding="utf-8") for path in files}
    keys = sorted({key for text in good.values() for key in tomllib.loads(text)})

    def one(case: int) -> None:
        random = Random(f"{seed}/catalogue/{case}")
        path = random.choice(files)
        if random.random() < 0.8:
            data = tomllib.loads(good[path])
            for _ in range(random.choice([1, 1, 2])):
                nasty.changed(data, random, keys)
            text = tomli_w.dumps(data)
        else:
            text = nasty.bent(good[path], random)
        path.write_text(text, errors="surrogatepass")
        try:
            words = random.choice(
                [
                    ["list", "nginx-phpfpm"],
                    ["up", "nginx", "--site", "static"],
                    ["up", "nginx"],
                    ["run", "static-hello", "--yes"],
                ]
            )
            said = says([*words, "--catalog", str(mine)])
            check_end(said)
            if said.experiment:
                check_sense(said.experiment)
        finally:
            path.write_text(good[path], encoding="utf-8")

    each_case(seed, cases, one)


def test_real_processes(tmp_path: Path) -> None:
    """The same through the front door, where nothing is caught that a user would see."""
    path = tmp_path / "mine.toml"
    random = Random(f"{min(seeds())}/process")
    for _ in range(PROCESSES):
        data = copy.deepcopy(RICH)
        data["variants"]["a"]["stack"] = "no such stack"
        nasty.changed(data, random, KEYS)
        path.write_text(tomli_w.dumps(data))
        done = subprocess.run(
            [Path(sys.executable).with_name("webdyno"), "run", path],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == Exit.USER_ERROR, done
        assert "Traceback" not in done.stderr
        assert done.stderr.startswith("webdyno: ")
