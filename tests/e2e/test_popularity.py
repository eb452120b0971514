"""Thousands of files by popularity: what a real nginx was requested, by its own log."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from webdyno.config import Catalogue, CommandLine, read_experiment, read_overrides
from webdyno.host.this_machine import Testbed
from webdyno.load.interface import LoadOrder
from webdyno.load.loadgen import Loadgen
from webdyno.measure.planned import MOST_CERTIFIED, plan_variants
from webdyno.servers.starting import open_stack

FILES = 2000
ASKED = {
    "title": "popularity",
    "question": "which files were asked for?",
    "site": "static",
    "load": {"paths": [f"/many/{{1..{FILES}}}.txt"]},
    "variants": {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}},
}


def test_files_are_asked_for_by_zipfs_law(tmp_path: Path) -> None:
    catalogue = own_catalogue(tmp_path / "own")
    experiment = read_experiment(
        CommandLine(ASKED, {}), read_overrides(["load.zipf=1", "load.connections=8"]), catalogue
    )
    variant = plan_variants(experiment, catalogue)[0]
    testbed = Testbed()
    with (
        open_stack(
            variant.stack, {}, variant.site, folder=tmp_path / "kept", testbed=testbed
        ) as running,
        Loadgen(testbed.split.client) as generator,
    ):
        order = LoadOrder("1", running.url, variant.asked, experiment.load, duration_s=60)
        result = generator.slot(replace(order, count=1000))
    assert result.failures.total == 0
    log = (tmp_path / "kept" / "nginx.log").read_text()
    counted = Counter(int(number) for number in re.findall(r"GET /many/(\d+)\.txt", log))
    asked = counted.total()
    assert asked == result.requests.completed == 1000
    assert max(counted) <= FILES
    # By Zipf's law with exponent 1 file k has the share 1 / (k H), where H sums 1/k over all files.
    harmonic = sum(1 / k for k in range(1, FILES + 1))
    for first, last in ((1, 1), (2, 9), (10, 99), (100, FILES)):
        share = sum(1 / k for k in range(first, last + 1)) / harmonic
        seen = sum(counted[k] for k in range(first, last + 1))
        error = (asked * share * (1 - share)) ** 0.5
        assert abs(seen - asked * share) < 6 * error, (first, last)


def test_the_preflight_check_looks_at_some_of_very_many(tmp_path: Path) -> None:
    catalogue = own_catalogue(tmp_path / "own")
    variant = plan_variants(read_experiment(CommandLine(ASKED, {}), [], catalogue), catalogue)[0]
    preflight_requests = [asked.path for asked in variant.preflight_requests]
    assert len(variant.asked) == FILES
    assert len(preflight_requests) == MOST_CERTIFIED
    assert preflight_requests[:2] == ["/many/1.txt", "/many/101.txt"]
    assert {asked.expect.body_bytes for asked in variant.preflight_requests} == {4096}


def own_catalogue(folder: Path) -> Catalogue:
    """A catalogue whose nginx writes down what it is asked for."""
    for kind, name in (("services", "nginx"), ("stacks", "nginx")):
        source = getattr(Catalogue.load(), kind)[name].folder
        (folder / kind / name).mkdir(parents=True)
        for path in source.iterdir():
            text = re.sub(r"access_log .*;", "access_log /dev/stderr;", path.read_text())
            (folder / kind / name / path.name).write_text(text)
    return Catalogue.load([folder])
