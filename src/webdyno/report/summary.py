"""`summary.csv`: every figure of the report as a table for other programs.

docs/report.md describes the columns.
"""

import csv
from collections.abc import Iterator, Sequence
from io import StringIO

from webdyno.model import format as shown
from webdyno.model.base import ENDLESS, Interval
from webdyno.model.files import MIB
from webdyno.model.judgement import ArmValue, Comparison
from webdyno.model.long_look import LongLook
from webdyno.report.pilots import pilot_records
from webdyno.report.view import PointView, RunView

COLUMNS = (
    "experiment",
    "kind",
    "metric",
    "unit",
    "arm",
    "baseline",
    "block",
    "estimate",
    "low",
    "high",
    "bounded_low",
    "bounded_high",
    "confidence",
    "verdict",
    "endpoint",
    "at_s",
)
Cell = str | int | float | None
Line = dict[str, Cell]


def summary_csv(view: RunView) -> str:
    """Give the file's text: for each metric arms and ratios, over all blocks and block by block.

    An experiment with factors has a column for each, named by its key, after the first one.
    """
    text = StringIO()
    columns = [COLUMNS[0], *view.head.experiment.factors, *COLUMNS[1:]]
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for at in view.points:
        units = {metric.name: metric.unit for metric in at.judgement.metrics}
        about = {"experiment": view.head.experiment_name} | _levels(at)
        for line in _pilot_lines(at):
            writer.writerow(about | line)
        for line in _lines(at.judgement.arms, at.judgement.comparisons):
            writer.writerow(about | {"unit": units[str(line["metric"])]} | line)
        for line in _course_lines(at.judgement.looks):
            writer.writerow(about | line)
        for judged in at.judgement.endpoints:
            there: Line = {"unit": judged.metric.unit, "endpoint": judged.endpoint}
            for line in _lines(judged.arms, judged.comparisons):
                writer.writerow(about | there | line)
    return text.getvalue()


def _levels(point: PointView) -> Line:
    return {
        key: level if isinstance(level, int | float) else shown.level(level)
        for key, level in point.levels.items()
    }


def _pilot_lines(point: PointView) -> Iterator[Line]:
    """Give what each arm showed alone: how it starts, and the times found; all in seconds."""
    for pilot in pilot_records(point.data):
        found = {f"cold_{name}": value for name, value in pilot.cold} | {
            f"pilot_{name}": value for name, value in pilot.found if name.endswith("_s")
        }
        for name, value in found.items():
            if value is not None:
                about: Line = {"kind": "pilot", "metric": name, "unit": "s", "arm": pilot.arm}
                yield about | {"estimate": _figure(value)}


def _course_lines(looks: Sequence[LongLook]) -> Iterator[Line]:
    """Give the figures of each part of long looks; `at_s` is when it began, under load."""
    for look in looks:
        for part in look.parts:
            memory = part.memory.span(MIB) if part.memory else None
            for metric, unit, found in (
                ("rate_rps", "requests/s", part.rate_rps),
                ("response_p50_us", "µs", part.p50_us),
                ("response_p99_us", "µs", part.p99_us),
                ("server_cpu_us", "µs", part.server_cpu_us),
                ("memory_mib", "MiB", memory),
            ):
                about: Line = {"kind": "long-look", "metric": metric, "unit": unit}
                if found is not None:
                    yield about | {"arm": look.arm, "at_s": _figure(part.at_s)} | _interval(found)


def _lines(arms: Sequence[ArmValue], comparisons: Sequence[Comparison]) -> Iterator[Line]:
    for value in arms:
        about: Line = {"metric": value.metric, "arm": value.arm}
        yield about | {"kind": "arm"} | _interval(value.interval)
        yield from _blocks(about | {"kind": "arm-block"}, value.blocks, value.by_block)
    for found in comparisons:
        about = {"metric": found.metric, "arm": found.a, "baseline": found.b, "unit": "ratio"}
        verdict: Line = {"verdict": str(found.verdict)}
        yield about | {"kind": "ratio"} | _interval(found.ratio) | _bounded(found) | verdict
        yield from _blocks(about | {"kind": "ratio-block"}, found.blocks, found.by_block)


def _blocks(about: Line, blocks: Sequence[int], values: Sequence[float]) -> Iterator[Line]:
    for block, value in zip(blocks, values, strict=True):
        yield about | {"block": block, "estimate": _figure(value)}


def _interval(interval: Interval | None) -> Line:
    if interval is None:
        return {}
    return {
        "estimate": _figure(interval.estimate),
        "low": _figure(interval.low),
        "high": _figure(interval.high),
        "confidence": _figure(interval.confidence),
    }


def _bounded(found: Comparison) -> Line:
    """Give the interval with all bounds counted against the verdict, where there are any."""
    if found.bounded is None:
        return {}
    ends = {"bounded_low": found.bounded.low, "bounded_high": found.bounded.high}
    return {name: "inf" if end > ENDLESS else _figure(end) for name, end in ends.items()}


def _figure(value: float) -> str:
    """Seven digits: more than any measurement has, and no noise of binary fractions."""
    return f"{value:.7g}"
