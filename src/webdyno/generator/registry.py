"""All load generators by name: whatever a file of this package has as its PROGRAM."""

import pkgutil
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from webdyno.generator.interface import Program
from webdyno.model.experiment import OWN_GENERATOR, Experiment
from webdyno.model.metrics import metric_rule
from webdyno.model.mistake import Mistake


def programs() -> Mapping[str, Program]:
    """Give every program that makes load by its name, webdyno's own first."""
    return _found_in(tuple(sys.modules[__package__].__path__))


@cache
def _found_in(folders: tuple[str, ...]) -> Mapping[str, Program]:
    modules = (
        import_module(f"{__package__}.{each.name}") for each in pkgutil.iter_modules(folders)
    )
    found = [module.PROGRAM for module in modules if hasattr(module, "PROGRAM")]
    found.sort(key=lambda it: (it.name != OWN_GENERATOR, it.name))
    return {it.name: it for it in found}


def program(name: str) -> Program:
    """Give a program by name; raise Mistake when there is none of that name."""
    known = programs()
    if name not in known:
        raise Mistake(f"there is no load generator named {name!r}; choose from {', '.join(known)}")
    return known[name]


def generator_fault(experiment: Experiment) -> str | None:
    """Say why an experiment's generator can't make its load, or can't tell what decides."""
    name = experiment.generator
    its = program(name)
    faults = {
        arm: its.fault(experiment.load_of(arm), experiment.requests_of(arm))
        for arm in experiment.arms
    }
    for arm, fault in faults.items():
        if fault is not None:
            of_arm = "" if len(set(faults.values())) == 1 else f"arm {arm}: "
            return (
                f"{of_arm}generator {name} {fault}; or use generator = {OWN_GENERATOR}, which can"
            )
    if experiment.measure.lead_in_s and not its.tells_windows:
        return (
            f"{name} counts from its first request on, so lead_in_s would change nothing; leave it "
            f'out, or use generator = "{OWN_GENERATOR}"'
        )
    decide_on = experiment.measure.decide_on
    if metric_rule(decide_on).needs == "times" and not its.tells_times:
        return (
            f"{name} doesn't tell the distribution of response times, which "
            f'decide_on = "{decide_on}" needs; use generator = "{OWN_GENERATOR}"'
        )
    return None
