"""A gate, asked from Python."""

from typing import Unpack

from webdyno.core.limits import GateJudgement
from webdyno.interfaces.python.api import CallOptions, Options, Texts, several
from webdyno.interfaces.python.result import GateResult, GateRun
from webdyno.launch.measure import measure_again
from webdyno.questions.gate.experiment import (
    ORIGIN,
    WORKING_TREE,
    AskedGate,
    asked_gate,
    measure_confirmation,
)
from webdyno.questions.gate.failed import measure_growth


def gate(
    *,
    base: str = ORIGIN,
    head: str = WORKING_TREE,
    fail_if: Texts = (),
    paths: Texts = (),
    site: str | None = None,
    confirm: bool = False,
    **options: Unpack[Options],
) -> GateResult:
    """Return whether a revision is worse than another by more than is tolerated.

    `fail_if`: limits, such as `cpu > +3%` or `throughput < -5%`; those of `webdyno gate` unless any
    is given. `paths`: endpoints, each asked by itself; else what webdyno.toml says. `confirm`: it
    fails only if a second measurement, from fresh builds, fails as well.
    """
    given = CallOptions.of(options, Options)
    asked = AskedGate(
        base=base,
        head=head,
        fail_if=several(fail_if),
        paths=several(paths),
        site=site,
        confirm=confirm,
        traffic=given.traffic,
        overrides=given.overrides,
    )
    arranged_gate = asked_gate(asked, given.catalogue, given.caller)
    if isinstance(arranged_gate, GateJudgement):
        return GateResult(arranged_gate, None)
    first = measure_again(*arranged_gate, given.folder, given.caller)
    measured = measure_confirmation(first, asked, given.catalogue, given.caller)
    if measured.end == "finished":
        measure_growth(measured.folder, arranged_gate.catalogue, given.caller)
    result = given.result_of(measured)
    assert isinstance(result, GateRun)  # noqa: S101 (its experiment is one)
    return result.gate
