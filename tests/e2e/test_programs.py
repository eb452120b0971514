"""Each stack with a program that is built: it keeps the rules of its sites, and bears a load."""

import re
from pathlib import Path

import pytest

from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.core.experiment import Experiment
from webdyno.core.records import PreflightRecord
from webdyno.host.this_machine import Testbed
from webdyno.load.interface import LoadOrder, program
from webdyno.measure.planned import plan_variants
from webdyno.measure.preflight import ask_all
from webdyno.measure.site_rules import broken_rule
from webdyno.servers.needs import build_program, unbuilt
from webdyno.servers.running import RunningStack
from webdyno.servers.starting import open_stack
from webdyno.validity.preflight import response_differences

CATALOGUE = Catalogue.load()
STACKS = [
    stack
    for stack in CATALOGUE.stacks.values()
    if any(part.service.build for part in stack.services.values())
]
COMPRESSED = CATALOGUE.site("static-20")
PAIRS = [(stack.name, site.name) for stack in STACKS for site in CATALOGUE.sites_for(stack)]
PAIRS += [
    (stack.name, COMPRESSED.name)
    for stack in CATALOGUE.stacks.values()
    if COMPRESSED in CATALOGUE.sites_for(stack)
]
SETTLES_S, LOAD_S = 0.5, 0.5
MOMENTS = 10


def both(stack: str, site: str) -> Experiment:
    variants = {"one": {"stack": stack}, "two": {"stack": stack}}
    reported = {"title": "t", "question": "q?", "site": site, "variants": variants}
    return read_experiment(CommandLine(reported, {}), [], CATALOGUE)


@pytest.mark.long
@pytest.mark.timeout(1800)  # some programs take minutes to build
@pytest.mark.parametrize(("stack", "site"), PAIRS)
def test_it_does_what_its_site_asks_for(stack: str, site: str, tmp_path: Path) -> None:
    experiment, wanted = both(stack, site), CATALOGUE.site(site)
    for service in unbuilt([CATALOGUE.stack(stack)]):
        build_program(service, lambda _: None)
    with open_stack(
        CATALOGUE.stack(stack),
        experiment.settings_of("one"),
        wanted,
        folder=tmp_path,
        testbed=Testbed(),
    ) as running:
        check_responses(running, experiment)
        check_load(running, experiment)
        running.check_alive()
        assert all(re.match(r"\d+\.\d+", version) for version in running.versions().values())


def check_responses(running: RunningStack, experiment: Experiment) -> None:
    planned, _ = plan_variants(experiment, CATALOGUE)
    testbed = Testbed()
    broken = broken_rule(running, planned.site, planned.load, testbed.client_entry())
    responses = ask_all(
        running.url, planned.preflight_requests, planned.load, testbed.client_entry()
    )
    reported = PreflightRecord(
        round=0,
        responses={"one": responses, "two": responses},
        broken_rules={"one": broken} if broken else {},
    )
    assert not [it.what for it in response_differences(reported, experiment)]


def check_load(running: RunningStack, experiment: Experiment) -> None:
    planned, _ = plan_variants(experiment, CATALOGUE)
    order = LoadOrder(
        "a moment",
        running.url,
        planned.asked,
        planned.load,
        LOAD_S,
        ramp_up_s=SETTLES_S,
    )
    with program("loadgen").new(Testbed().split.client, []) as generator:
        # 64 new connections to a database take some programs more than that moment.
        results = (generator.slot(order) for _ in range(MOMENTS))
        result = next((it for it in results if it.requests.completed), None)
    assert result is not None
    assert result.failures.total == 0, result.failures
