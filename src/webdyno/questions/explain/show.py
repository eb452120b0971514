"""What limits a variant, what settings do, and what other ones are worth: by changing one thing."""

from collections.abc import Iterator

from webdyno.media import document as doc
from webdyno.questions.explain.decide import what_limits, what_settings_are_worth, what_settings_do
from webdyno.report.show import PointView, Show


class ExplainShow(Show):
    """What was found by measuring variants with something changed."""

    def found(self, point: PointView) -> Iterator[doc.Section]:
        """Yield what each setting does, what limits, what settings are worth."""
        judged = point.judgement
        yield from doc.said_section(
            "What each setting does",
            what_settings_do(judged.effects),
            note="Averaged over the other settings, from variants that had them in all "
            "combinations or in a balanced part of these. All CIs hold together with 95%.",
        )
        yield from doc.said_section(
            "What limits it",
            what_limits(judged.elasticities),
            note="By how many per cent the throughput falls when there is one per cent less: "
            "near 1 is the limit, near 0 there is more of it than is needed. Each was tried: "
            "variants had less of one thing.",
            brief="by how many % the throughput falls with 1% less of it",
        )
        yield from doc.said_section(
            "What other settings are worth",
            what_settings_are_worth(judged.gains),
            note="Known causes of slow servers that this one may have; each was tried, alone, in a "
            "variant of its own.",
        )
