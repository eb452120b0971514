"""All that is judged of a recorded run: nothing that is computed is excluded.

Codes and figures are apart from texts for people, which are those that are `Prose` by their type.
"""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, NamedTuple, get_args, get_type_hints

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from webdyno.comparison import decide, foresee, next_variants, question_of
from webdyno.comparison.runs import compare_sweeps
from webdyno.core.records import RoundRecord
from webdyno.core.sweep import SweepJudgement
from webdyno.core.text import Wording
from webdyno.evidence.point_data import PointData, RunData
from webdyno.fleet import judge_fleet, judge_machine
from webdyno.measure.folder import RunFolder
from webdyno.measure.long_look import lacking_looks
from webdyno.planning.adjustments import due_adjustment
from webdyno.planning.settings import slot_settings, slots_per_variant
from webdyno.questions.explain.decide import advice_evidence
from webdyno.validity import used_s

DECIDED_AFTER = slice(1, 8, 2)
"""The rounds after which is decided again what comes next, next to the end: 2, 4, 6 and 8."""


class Recorded(NamedTuple):
    """What was judged, in two parts."""

    figures: object
    """Codes and figures, as plain JSON."""
    texts: dict[str, str]
    """By the place in what was judged, such as `.gate.headline`."""


def verdicts_of(run: RunData, judged: SweepJudgement) -> Recorded:
    """Decide again what was decided while a run went on, which is `judged` as a whole."""
    return recorded(
        {
            "judged": judged,
            "gate": question_of(run.head.experiment).judge_all_points(run),
            "suspected": {data.point.label: _suspected(data) for data in run.points},
            "decided": {data.point.label: list(_decided(data)) for data in run.points},
        }
    )


def fleet_verdict_of(folders: Mapping[str, RunFolder]) -> Recorded:
    """Judge runs of one experiment on several machines together."""
    machines = {name: judge_machine(it.data()) for name, it in folders.items()}
    return recorded(judge_fleet(machines))


def change_verdict_of(before: RunFolder, after: RunFolder) -> Recorded:
    """Judge what changed between two runs of one experiment."""
    return recorded(compare_sweeps(before.data(), after.data()))


def recorded(judged: object) -> Recorded:
    """Report codes and figures from texts."""
    texts: dict[str, str] = {}
    plain = to_jsonable_python(judged, inf_nan_mode="constants")
    return Recorded(_figures(judged, plain, "", texts), texts)


def _figures(value: object, plain: Any, where: str, texts: dict[str, str]) -> object:  # noqa: ANN401 (JSON)
    """Return a value as plain JSON without its prose, which goes to `texts`.

    Of a table of texts its keys are left.
    """
    if isinstance(value, BaseModel) or is_dataclass(value):
        prose = _prose(value.__class__)
        of_prose = {name: said for name, said in plain.items() if name in prose}
        texts.update(
            pair for name, said in of_prose.items() for pair in _said(said, f"{where}.{name}")
        )
        return {
            name: list(inner)
            if name in prose
            else _figures(getattr(value, name), inner, f"{where}.{name}", texts)
            for name, inner in plain.items()
            if name not in prose or isinstance(inner, dict)
        }
    if isinstance(value, Mapping):
        inner_of = zip(value.values(), plain.items(), strict=True)
        return {
            key: _figures(inner, its, f"{where}.{key}", texts) for inner, (key, its) in inner_of
        }
    if isinstance(value, (list, tuple)):
        both = enumerate(zip(value, plain, strict=True))
        return [_figures(inner, its, f"{where}[{n}]", texts) for n, (inner, its) in both]
    return plain


def _said(plain: object, where: str) -> Iterator[tuple[str, str]]:
    """Give the texts of a field of prose by their places: of one, of a list, of a table."""
    if isinstance(plain, str) and plain:
        yield where, plain
    elif isinstance(plain, list):
        for number, inner in enumerate(plain):
            yield from _said(inner, f"{where}[{number}]")
    elif isinstance(plain, dict):
        for key, inner in plain.items():
            yield from _said(inner, f"{where}.{key}")


@cache
def _prose(kind: type) -> set[str]:
    """Name the fields of a class that are texts for people."""
    hints = get_type_hints(kind, include_extras=True)
    return {name for name, hint in hints.items() if _has_wording(hint)}


def _has_wording(hint: object) -> bool:
    if any(isinstance(mark, Wording) for mark in getattr(hint, "__metadata__", ())):
        return True
    return any(map(_has_wording, get_args(hint)))


def _suspected(data: PointData) -> dict[str, object]:
    """What a run shows of each variant when settings are looked for that make it slow."""
    shown = {variant: advice_evidence(data, variant) for variant in data.experiment.variants}
    # A set's order is another one in each process.
    return {variant: vars(it) | {"broken": sorted(it.broken)} for variant, it in shown.items()}


def _decided(data: PointData) -> Iterator[dict[str, Any]]:
    """What comes next, after some rounds and at the end."""
    ends = [n for n, record in enumerate(data.records, 1) if isinstance(record, RoundRecord)]
    for end in [*ends[DECIDED_AFTER], len(data.records)]:
        yield _next(PointData.of(data.head, data.records[:end], data.point))


def _next(data: PointData) -> dict[str, Any]:
    used = used_s(data)
    return {
        "used_s": used,
        "variants": next_variants(data),
        "stop": decide(data, used),
        "forecast": foresee(data),
        "fix": due_adjustment(data, used),
        "slots": slot_settings(data),
        "slots_per_variant": slots_per_variant(data),
        "fails_gate": question_of(data.experiment).stops_elsewhere([data]) is not None,
        "lacking_looks": lacking_looks(data),
    }
