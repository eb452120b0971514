"""What limits a run's variants, asked from Python."""

from pathlib import Path
from typing import Unpack

from webdyno.interfaces.python.api import CallOptions, Options, Texts, several
from webdyno.interfaces.python.result import Result
from webdyno.questions.explain.explain import (
    AskedExplanation,
    measure_advice,
    measure_limits,
    suspected_settings,
)


def explain(
    folder: str | Path, *, variants: Texts = (), **options: Unpack[Options]
) -> dict[str, Result]:
    """Find what limits the variants of a run: each is measured again with less of one thing.

    By variant; `judgement.elasticities` of each result has what the throughput hangs on.
    """
    given = CallOptions.of(options, Options)
    asked = AskedExplanation.of(Path(folder), several(variants), given.time_s, given.folder)
    results = map(given.result_of, measure_limits(asked, given.caller))
    return dict(zip(asked.all_variants, results, strict=True))


def try_advice(
    folder: str | Path, *, variants: Texts = (), **options: Unpack[Options]
) -> dict[str, Result]:
    """Measure what settings are worth that are known to be better than those of a run's variants.

    By variant, of those for which there are any; `judgement.gains` of each result has their worth.
    """
    given = CallOptions.of(options, Options)
    asked = AskedExplanation.of(Path(folder), several(variants), given.time_s, given.folder)
    suspected = suspected_settings(asked)
    results = map(given.result_of, measure_advice(asked, suspected, given.caller))
    return dict(zip((variant for variant in suspected if suspected[variant]), results, strict=True))
