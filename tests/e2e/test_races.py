"""`webdyno compare` and `webdyno tune`, on real servers."""

import signal
from pathlib import Path

import pytest

from e2e.commands import (
    INTERRUPTED,
    left_behind,
    started_webdyno,
    wait_for,
    webdyno,
    webdyno_here,
)
from variants import further
from webdyno.comparison import judge
from webdyno.core.records import IncidentRecord, RoundRecord
from webdyno.evidence.point_data import PointData
from webdyno.measure.folder import RunFolder
from webdyno.questions.ranking.decide import rounds_to_a_look

SHORT = (
    "--set=measure.slot_s=0.1",
    "--set=measure.warmup_s=0",
    "--set=measure.slots_per_variant=2",
)

DIES_UNDER_LOAD = """
import http.server, itertools, os, sys

asked = itertools.count()

class Mortal(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if next(asked) == 200:
            os._exit(1)
        super().do_GET()

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Mortal).serve_forever()
"""
"""More requests than are made to get ready and to compare answers."""


@pytest.mark.measures
def test_a_ranking_gives_places_and_its_variants_leave_it(tmp_path: Path) -> None:
    stacks = ("nginx", "apache-prefork", "lighttpd")
    done = webdyno(
        *("compare", *stacks, *SHORT, "--set=measure.budget_s=1s", "--output=run"), folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "rank" in done.stdout
    folder = RunFolder.open(tmp_path / "run")
    records = folder.records()
    found = judge(PointData.of(folder.head, records))
    assert found.ranking
    ranks = {it.variant: it for it in found.ranking.ranks}
    assert set(ranks) == set(stacks)
    assert ranks["nginx"].best < ranks["apache-prefork"].worst
    rounds = [it for it in records if isinstance(it, RoundRecord)]
    look = rounds_to_a_look(folder.head.experiment)
    assert {len(set(it.order)) for it in rounds[:look]} == {len(stacks)}
    assert left_behind(tmp_path) == []


@pytest.mark.long
def test_a_server_that_dies_is_out_of_the_ranking(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("Hello")
    alive = "python3 -m http.server --bind 127.0.0.1 $PORT"
    (tmp_path / "mortal.py").write_text(DIES_UNDER_LOAD)
    mortal = "mortal"
    stacks = [f"cmd:{alive}", f"other=cmd:exec {alive}", f"{mortal}=cmd:python3 mortal.py $PORT"]
    done = webdyno(
        *("compare", *stacks, "--path=/index.html", "--set=load.connections=4"),
        *(*SHORT[1:], "--set=measure.slot_s=0.2", "--set=measure.budget_s=3s", "--output=run"),
        folder=tmp_path,
    )
    assert "the run continues without it" in done.stderr
    assert "has no rank" in done.stdout
    run = RunFolder.open(tmp_path / "run")
    records = run.records()
    ranking = judge(PointData.of(run.head, records)).ranking
    assert ranking
    assert mortal in ranking.out, done.stdout
    assert {it.variant for it in records if isinstance(it, IncidentRecord)} == {mortal}
    last = [it for it in records if isinstance(it, RoundRecord)][-1]
    assert set(last.order) == {it for it in run.head.experiment.variants if it != mortal}
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("compare", "nginx"), "two systems or more"),
        (("compare", "nginx", "--all"), "--all: "),
        (("compare", "a=nginx", "a=node"), "a is the name of another one"),
        (("compare", "--all", "--site", "nowhere"), "there is no site named 'nowhere'"),
        (("compare", "nginx", "node", "rdis"), "rdis"),
        (
            ("tune", "haproxy-front", "--set=variants.haproxy-front.settings.threads=wide"),
            "threads",
        ),
        (("tune", "cmd:./server --port $PORT"), "no setting to tune: of a system of your own"),
        (("tune", "nginx", "--slo=p99<1s", "--set=load.loop=closed"), "--set load.loop=closed: "),
        (("capacity", "nginx", "node", "--set=load.loop=closed"), "an open loop by itself; leave"),
        (("tune", "nginx", "--vary", "load.connections=1,2"), "--vary"),
        (("tune", "nginx", "--time", "soon"), "--time"),
    ],
)
def test_what_can_be_neither_ranked_nor_tuned_is_reported(
    arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    done = webdyno_here(*arguments, "--yes", folder=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("goes_on", [False, further(True)])
def test_tuning_is_interrupted_gone_on_with_and_judged(tmp_path: Path, goes_on: bool) -> None:
    command = ("tune", "nginx", "--time=4s", *SHORT, "--output=t")
    with started_webdyno(*command, folder=tmp_path) as process:
        wait_for(tmp_path / "t/nginx-01/slots.jsonl", 12)
        process.send_signal(signal.SIGINT)
        reported, _ = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, reported
    assert "the same command with -o t continues" in reported
    assert "Unconfirmed: no final comparison was run yet" in reported
    assert "How nginx was tuned so far" in reported
    assert left_behind(tmp_path) == []
    if not goes_on:
        return
    done = webdyno(*command, "--no-report", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "combinations tried" in done.stdout
    assert "Unconfirmed" in done.stdout
    if (tmp_path / "t/final").exists():
        (tuned,) = RunFolder.open(tmp_path / "t/final").head.experiment.tuning
        assert set(tuned.settings) == {"workers", "sendfile", "open_file_cache"}
        assert tuned.tried >= 8
        assert "How nginx was tuned" in done.stdout
    assert left_behind(tmp_path) == []
