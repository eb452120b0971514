"""Arms that have another value of one setting each, of which it is known that it can cost much."""

from collections.abc import Iterator, Mapping, Sequence

from webdyno.definitions import Catalogue
from webdyno.definitions.value import shown_value
from webdyno.judge.advice import SIGNS, AdviceEvidence
from webdyno.model.advice import Advice
from webdyno.model.experiment import Experiment
from webdyno.model.knob import FACTORS, SERVER_CPUS, Knob, KnobValue
from webdyno.model.machine import CpuSplit
from webdyno.model.measure import Measure
from webdyno.model.metrics import CPU_TIME
from webdyno.run.interventions import KEPT
from webdyno.stack.roles import resolve_stack


def advice_for(
    arm: str,
    experiment: Experiment,
    catalogue: Catalogue,
    split: CpuSplit,
    evidence: AdviceEvidence,
) -> list[Advice]:
    """Give the settings that may be why an arm is slow, as its knobs and a run of it have it.

    Where the run breaks a rule that one of them mends, only those that do: no rate is valid before.
    """
    found = list(_all_of_it(arm, experiment, catalogue, split, evidence))
    return [it for it in found if it.mends in evidence.broken] or found


def _all_of_it(
    arm: str,
    experiment: Experiment,
    catalogue: Catalogue,
    split: CpuSplit,
    evidence: AdviceEvidence,
) -> Iterator[Advice]:
    here = experiment.arms[arm]
    stack, site = catalogue.stack(here.stack), catalogue.site(experiment.site_of(arm))
    cpus = len(split.servers)
    roles = resolve_stack(stack, site, experiment.knobs_of(arm), cpus).roles
    resolved = {it.name: it.knobs for it in roles}
    sent = _headers(arm, experiment)
    for name, (knob, sets) in stack.with_services(site.services).exposed_knobs().items():
        role, inner = sets[0]
        now = resolved[role][inner]
        if knob.cause is None or not _is_felt(knob, resolved[role], sent):
            continue
        if knob.cause.where is not None and not SIGNS[knob.cause.where](evidence):
            continue
        for better in knob.cause.better:
            tried = _tried(better, now, knob, cpus)
            if tried is not None and tried != now:
                yield Advice(
                    knob=name,
                    now=now,
                    tried=tried,
                    says=knob.cause.says,
                    vendor=knob.cause.vendor,
                    mends=knob.cause.mends if knob.cause.mends in evidence.broken else None,
                )


def asked_advice(arm: str, experiment: Experiment, advice: Sequence[Advice]) -> Experiment:
    """Give the experiment that tells what each piece of advice is worth to an arm.

    Where the arm breaks a rule that spoils rates, it decides on the servers' CPU time; a search for
    the capacity goes by objectives, and stays one.
    """
    here = experiment.arms[arm]
    changed = {f"{arm}, {it.knob} = {shown_value(it.tried)}": it for it in advice}
    arms = {name: here.with_knobs({it.knob: it.tried}) for name, it in changed.items()}
    kept = experiment.measure.model_dump(include={*KEPT, "decide_on"}, exclude_defaults=True)
    if experiment.capacity is None and any(it.mends for it in advice):
        kept["decide_on"] = CPU_TIME
    return experiment.derived(
        f"What would make {arm} faster",
        f"What are other settings worth to {arm}?",
        {arm: here} | arms,
        Measure.model_validate({"patience": 2, **kept}),
        advice=changed,
    )


def _headers(arm: str, experiment: Experiment) -> set[str]:
    """Name what headers an arm's requests have, in small letters."""
    headers = [experiment.load_of(arm).headers, *(it.headers for it in experiment.requests_of(arm))]
    return {name.lower() for each in headers for name in each}


def _is_felt(knob: Knob, beside: Mapping[str, KnobValue], sent: set[str]) -> bool:
    header = knob.needs_header
    return not knob.idle(beside) and (header is None or header.lower() in sent)


def _tried(better: KnobValue, now: KnobValue, knob: Knob, cpus: int) -> KnobValue | None:
    """Give what a better value is in figures; None where it lies beyond the knob's range."""
    if better == SERVER_CPUS:
        return cpus
    if not isinstance(better, str) or better not in FACTORS or isinstance(now, str):
        return better
    found = now * FACTORS[better]
    whole = max(round(found), 1) if knob.type == "whole" else found
    return None if knob.fault(whole) else whole
