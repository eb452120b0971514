"""Variants that differ in more than their servers: page, load, and where they run."""

from pathlib import Path

from e2e.commands import QUICK, run_rounds, webdyno_here
from webdyno.core.records import PreflightRecord, SlotRecord
from webdyno.measure.folder import RunFolder

TWO_PAGES = """
title = "Two pages"
question = "What does the larger page cost?"
site = "static"

[load]
connections = 4

[variants.small]
stack = "nginx"
load = { paths = ["/100.txt"], count = 40 }

[variants.large]
stack = "nginx"
load = { paths = ["/100KB.txt"], connections = 2, count = 30 }
testbed = { server_cores = 1 }
"""


UNCUT = ("--set=measure.slot_s=60", *QUICK[1:])
"""So long the requests of a slot may take, whose number ends it."""


def test_two_pages_of_one_server_are_compared_each_by_its_own_load(tmp_path: Path) -> None:
    (tmp_path / "pages.toml").write_text(TWO_PAGES)
    reported = run_rounds(1, "run", "pages.toml", *UNCUT, folder=tmp_path)
    reported += webdyno_here("report", "run", "--verbose", folder=tmp_path).stdout
    assert "different bodies" not in reported
    assert "differs from small" in reported
    assert "load.paths: /100KB.txt, not /100.txt" in " ".join(reported.split())
    records = RunFolder.open(tmp_path / "run").records()
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    paths = {
        variant: [it.path for it in responses] for variant, responses in preflight.responses.items()
    }
    assert paths == {"small": ["/100.txt"], "large": ["/100KB.txt"]}
    slots = [it for it in records if isinstance(it, SlotRecord) and it.phase == "measure"]
    completed = {
        variant: {it.load.requests.completed for it in slots if it.variant == variant}
        for variant in paths
    }
    assert completed == {"small": {40}, "large": {30}}
