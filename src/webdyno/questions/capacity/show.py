"""How much variants can take: what was full there, what came of asking for more, what it means."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from webdyno.comparison import question_of
from webdyno.comparison.saturation import AT_THE_LIMIT, what_was_full
from webdyno.core import format as text
from webdyno.core.findings import Overload, OverRounds
from webdyno.core.judgement import DECIDED, Comparison, Judgement, Verdict
from webdyno.core.metrics import CAPACITY
from webdyno.core.run import PAGE_FILE, SWEEPS
from webdyno.media import document as doc
from webdyno.report.show import PointView, Show
from webdyno.report.words import LEAST_WORTH_TIMES, number_word

ABOUT_OVERLOADS = (
    "The last two of four seconds at a multiple of the capacity; medians of the rounds that tried "
    "it. Goodput: requests within the objectives, then as a share of the capacity. Back: how long "
    "half of the capacity broke the objectives afterwards."
)
OVERLOAD_HEADINGS = ("goodput, req/s", "of capacity", "failed", "p50", "p99", "back after")


class CapacityShow(Show):
    """Capacities, where they were searched for."""

    def in_practice(self, point: PointView) -> Sequence[str] | None:
        """Return what a difference in capacity means for the number of servers; of two variants."""
        if point.data.measure.decide_on != CAPACITY:
            return None
        asked = [each for each in point.decisive if each.verdict in DECIDED and each.ratio]
        if len(point.data.experiment.variants) != 2 or len(asked) != 1:
            return []
        kept = text.listed(question_of(point.data.experiment).loading.aims)
        return [f"{_in_servers(asked[0])} within {kept}."]

    def lower_bounds(self, judged: Judgement) -> Sequence[str]:
        return [full.variant for full in judged.saturation if full.is_lower_bound]

    def found(self, point: PointView) -> Iterator[doc.Section]:
        """Yield what was full just below the capacities, and what came of asking for more."""
        judged = point.judgement
        yield from doc.said_section(
            AT_THE_LIMIT,
            what_was_full(judged.saturation),
            note="By all trials from 90% of a round's capacity up to it.",
        )
        yield from overload_section(judged.overloads)

    def pages(self, folder: Path) -> Iterator[doc.Section]:
        """Yield the pages of the sweeps around the capacities, by what they show."""
        pages = {said: f"{name}/{PAGE_FILE}" for name, said in SWEEPS.items()}
        links = [
            (text.upper_first(said), page)
            for said, page in pages.items()
            if (folder / page).exists()
        ]
        if links:
            yield doc.Section("Sweeps around the capacities", [doc.Links(links)])

    def results(self, point: PointView) -> Iterator[doc.Figure]:
        """Draw trials by their rates, and goodput beyond the capacity."""
        from webdyno.questions.capacity.charts import capacity_figure, overload_figure

        yield from filter(None, (capacity_figure(point), overload_figure(point)))


def _in_servers(comparison: Comparison) -> str:
    if comparison.verdict is Verdict.EQUIVALENT or not comparison.ratio:
        return f"{comparison.a} and {comparison.b} take the same load"
    more, fewer = comparison.a, comparison.b
    if comparison.ratio.estimate < 1:
        more, fewer = fewer, more
    times = max(comparison.ratio.estimate, 1 / comparison.ratio.estimate)
    about = "at least" if more in comparison.limited_by else "about"
    if times < LEAST_WORTH_TIMES:
        return f"{more} takes {about} {text.percent(times - 1)} more load than {fewer}"
    return f"One {more} takes the load of {about} {number_word(times)} {fewer}"


def overload_section(overloads: Sequence[Overload]) -> Iterator[doc.Section]:
    """Yield a table of what came of asking for more than the capacity, where that was tried."""
    if overloads:
        columns = [
            doc.Column("variant", "name", obvious=True),
            doc.Column("load", "value"),
            *(doc.Column(name, "value", spare=name == "p50") for name in OVERLOAD_HEADINGS),
        ]
        rows: list[list[doc.Cell | str]] = [
            [
                each.variant,
                f"{each.times:g}{text.TIMES}",
                _median(each.goodput_rps, lambda rps: text.significant(rps) if rps else "0"),
                _median(each.of_capacity, text.percent),
                _median(each.failed, text.percent),
                _median(each.p50_us, text.latency),
                _median(each.p99_us, text.latency),
                back_words(each),
            ]
            for each in overloads
        ]
        table = doc.Table(columns, [doc.RowGroup(rows)], style="brief")
        yield doc.Section(
            "Beyond capacity", [table], ABOUT_OVERLOADS, "goodput is what meets the objectives"
        )


def _median(spread: OverRounds | None, written: Callable[[float], str]) -> str:
    return written(spread.median) if spread else text.MISSING


def back_words(overload: Overload) -> str:
    """Return how long it took to come back, and in how many rounds it didn't."""
    if overload.died:
        return f"it died ({overload.died} of {overload.rounds})"
    if not overload.back_s:
        return "not in 10 s"
    said = text.duration(float(f"{overload.back_s.median:.2g}"))
    if overload.back == overload.rounds:
        return said
    return f"{said} ({overload.back} of {overload.rounds})"
