"""Tuning, asked from Python."""

from typing import Unpack

from webdyno.interfaces.python.api import CallOptions, Systems, Texts, several
from webdyno.interfaces.python.result import Result
from webdyno.launch.measure import measure_or_go_on
from webdyno.questions.tune.tune import FINAL, Tuning, search_in_turns


def tune(
    system: str, baseline: str | None = None, *, slo: Texts = (), **options: Unpack[Systems]
) -> Result | None:
    """Look for better settings of one or two systems, then compare default and tuned again.

    `time` is for all of it: three parts for each search, one for the comparison. None where nothing
    better was found; `head.experiment.tuning` of the result has what was.
    """
    given = CallOptions.of(options, Systems)
    output, asked = given.folder, given.systems
    tuning = Tuning.of(system, baseline, several(slo), asked, given.catalogue, output, given.caller)
    times = tuning.times(given.time_s)
    if not search_in_turns(tuning.contenders, times.each_s, given.caller):
        raise KeyboardInterrupt
    final = tuning.final(times)
    if final is None:
        return None
    path = tuning.folder / FINAL
    return given.result_of(measure_or_go_on(FINAL, final, tuning.catalogue, path, given.caller))
