"""What people get wrong: one clear message that names it, and an exit code. Never a traceback."""

from pathlib import Path

import pytest

from e2e.commands import left_behind, webdyno_here

EXPERIMENT = """
title = "t"
question = "q?"
site = "static"

[variants.a]
stack = "nginx"

[variants.b]
stack = "node"
"""

FILES = {
    "good.toml": EXPERIMENT,
    "broken.toml": "title = \n",
    "empty.toml": "",
    "no-variants.toml": 'title = "t"\nquestion = "q?"\nsite = "static"\n',
    "one-variant.toml": EXPERIMENT.partition("[variants.b]")[0],
    "typo.toml": EXPERIMENT + "\n[mesure]\nslot_s = 1\n",
    "wrong-type.toml": EXPERIMENT + "\n[measure]\nslot_s = true\n",
    "unknown-stack.toml": EXPERIMENT.replace('"node"', '"nodejs"'),
    "unknown-site.toml": EXPERIMENT.replace('"static"', '"statics"'),
    "unknown-setting.toml": EXPERIMENT + "settings.wokers = 3\n",
    "setting-range.toml": EXPERIMENT.replace('"node"', '"nginx"') + "settings.workers = 0\n",
    "unfit.toml": EXPERIMENT.replace('"static"', '"wordpress"'),
    "no-rate.toml": EXPERIMENT + '\n[load]\nloop = "open"\n',
    "negative.toml": EXPERIMENT + "\n[load]\nconnections = -5\n",
    "text-number.toml": EXPERIMENT + '\n[load]\nconnections = "many"\n',
    "zero-budget.toml": EXPERIMENT + "\n[measure]\nbudget_s = 0\n",
    "odd-slots.toml": EXPERIMENT + "\n[measure]\nslots_per_variant = 3\n",
    "twice.toml": EXPERIMENT + '\n[factors]\n"load.connections" = [1, 1]\n',
    "bad-factor.toml": EXPERIMENT + '\n[factors]\n"load.conections" = [1, 2]\n',
    "bad-request.toml": EXPERIMENT + '\n[[requests]]\npath = "no slash"\n',
    "bad-slo.toml": EXPERIMENT + '\n[capacity]\nslo = ["p99 is small"]\n',
    "binary.toml": "\x00\x01\x02",
    "no-ab.txt": "Dear diary\n",
    "bad.har": "{",
    "bad.http": "GET /\nno header\n",
    "empty.log": "",
    "no-run/notes.txt": "nothing of ours",
    "broken-run/run.json": "{",
    "conf/nginx.conf": "http { server { listen ",
    "project/webdyno.toml": "[app]\nstrat = './server'\n",
}

BY_TCP = ("caddy", "nginx-phpfpm", "--site=hello-php", "--set=nginx-phpfpm.fastcgi=tcp")
RUN, DUEL = ("run", "--yes", "--output=out"), ("compare", "--yes", "--output=out")

CASES: list[tuple[tuple[str, ...], str]] = [
    # words
    (("rnu",), "rnu"),
    (("run", "--budgte=5s"), "--budgte"),
    (("compare", "nginx"), "two systems"),
    (("run", "static-helo"), "static-helo"),
    (("list", "ngnix"), "ngnix"),
    (("run", "study:heroku"), "heroku"),
    (("up", "ngnix"), "ngnix"),
    (("up", "nginx", "--port=99999"), "--port"),
    (("up", "nginx", "--set", "workers"), "workers"),
    (("up", "nginx", "--set", "workers=many"), "workers"),
    (("up", "redis", "--site=static"), "static"),
    (("up", "nginx-phpfpm", "--set", "fastcgi=tcp"), "--testbed netns"),
    (("doctor", "--install", "ngnix"), "ngnix"),
    # files of experiments
    ((*RUN, "none.toml"), "none.toml"),
    ((*RUN, "broken.toml"), "broken.toml"),
    ((*RUN, "empty.toml"), "empty.toml"),
    ((*RUN, "binary.toml"), "binary.toml"),
    ((*RUN, "no-variants.toml"), "variants"),
    ((*RUN, "one-variant.toml"), "two"),
    ((*RUN, "typo.toml"), "mesure"),
    ((*RUN, "wrong-type.toml"), "slot_s"),
    ((*RUN, "unknown-stack.toml"), "nodejs"),
    ((*RUN, "unknown-site.toml"), "statics"),
    ((*RUN, "unknown-setting.toml"), "wokers"),
    ((*RUN, "setting-range.toml"), "workers"),
    ((*RUN, "unfit.toml"), "wordpress"),
    ((*RUN, "no-rate.toml"), "rate_per_s"),
    ((*RUN, "negative.toml"), "connections"),
    ((*RUN, "text-number.toml"), "connections"),
    ((*RUN, "zero-budget.toml"), "budget_s"),
    ((*RUN, "odd-slots.toml"), "slots_per_variant"),
    ((*RUN, "twice.toml"), "twice"),
    ((*RUN, "bad-factor.toml"), "conections"),
    ((*RUN, "bad-request.toml"), "no slash"),
    ((*RUN, "bad-slo.toml"), "p99 is small"),
    # flags of experiments
    ((*RUN, "good.toml", "--set", "measure.slot=1"), "measure.slot"),
    ((*RUN, "good.toml", "--set", "measure.slot_s"), "measure.slot_s"),
    ((*RUN, "good.toml", "--time", "soon"), "--time"),
    ((*RUN, "good.toml", "--precision", "200%"), "--precision"),
    ((*RUN, "good.toml", "--question", "better?"), "--question"),
    ((*RUN, "good.toml", "--generator", "jmeter"), "jmeter"),
    ((*RUN, "good.toml", "--vary", "load.connections"), "--vary"),
    ((*RUN, "good.toml", "--fail-if", "c.throughput_rps < 5"), "--fail-if"),
    ((*RUN, "good.toml", "--fail-if", "p99 > 5%"), "+PERCENT"),
    ((*RUN, "good.toml", "--catalog", "nowhere"), "nowhere"),
    ((*RUN, "good.toml", "--server-cores", "900"), "900"),
    ((*RUN, "good.toml", "--link", "100mbit"), "link"),
    (("run", "--yes", "good.toml", "--output=no-run"), "no-run"),
    ((*RUN, "good.toml", "--traffic", "wget http://x/"), "wget"),
    ((*RUN, "good.toml", "--traffic", "bad.har"), "bad.har"),
    ((*RUN, "good.toml", "--traffic", "bad.http"), "bad.http"),
    (("traffic", "bad.har", "--flow", "--queries=hash"), "--queries: has no effect with --flow"),
    ((*RUN, "good.toml", "--traffic", "none.http"), "none.http"),
    # duels, own systems
    ((*DUEL, "nginx", "redis"), "redis"),
    ((*DUEL, *BY_TCP), "fastcgi at unix"),
    ((*DUEL, "nginx", "node", "--site", "wordpress"), "wordpress"),
    ((*DUEL, "nginx", "node", "--path", "none"), "none"),
    ((*DUEL, "cmd:", "nginx"), "cmd:"),
    ((*DUEL, "rev:none", "rev:none"), "rev:none"),
    ((*DUEL, "conf:none.conf", "nginx"), "none.conf"),
    ((*DUEL, "conf:conf/nginx.conf", "nginx"), "nginx.conf"),
    ((*DUEL, "url:ftp://x", "nginx"), "ftp"),
    ((*DUEL, "cmd:./x --port $PORT", "nginx", "--dir", "nowhere"), "nowhere"),
    (("gate", "--base", "rev:none", "--fail-if", "5 apples"), "5 apples"),
    (("capacity", "nginx", "node", "--slo", "p99=5"), "p99=5"),
    (("compare",), "--all"),
    (("tune", "nginx", "--time", "soon"), "--time"),
    (("init", "nowhere"), "nowhere"),
    # what was measured
    (("report", "none"), "none"),
    (("report", "no-run"), "no-run"),
    (("report", "broken-run"), "run.json"),
    (("resume", "none"), "none"),
    (("report", "no-run", "--format=parquet"), "no-run"),
    (("diff", "none", "no-run"), "none"),
    (("audit", "none.txt"), "none.txt"),
    (("audit", "no-ab.txt"), "no-ab.txt"),
    (("traffic", "none.log"), "none.log"),
    (("traffic", "empty.log"), "empty.log"),
    (("traffic", "no-ab.txt"), "no-ab.txt"),
    (("doctor", "--calibrate", "--body", "long"), "--body"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files that have something wrong with them."""
    top = tmp_path_factory.mktemp("errors")
    for name, content in FILES.items():
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(content, encoding="utf-8")
    return top


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 60
    assert len(set(CASES)) == len(CASES)


@pytest.mark.parametrize(("words", "names"), CASES, ids=[" ".join(words) for words, _ in CASES])
def test_a_mistake_is_reported(words: tuple[str, ...], names: str, folder: Path) -> None:
    done = webdyno_here(*words, folder=folder)
    said = done.stderr + done.stdout
    assert done.returncode in {1, 2, 3}, said
    assert names in said
    assert "Traceback" not in said
    assert not (folder / "out").exists()


def test_stacks_that_can_serve_a_site_are_those_with_a_name_to_ask_for(folder: Path) -> None:
    done = webdyno_here(*DUEL, "cmd:sleep $PORT", "nginx", "--site", "json", folder=folder)
    assert "stack nginx can't serve site json" in done.stderr
    assert "express" in done.stderr
    assert "cmd-" not in done.stderr


def test_nothing_is_left_behind(folder: Path) -> None:
    assert left_behind(folder) == []
