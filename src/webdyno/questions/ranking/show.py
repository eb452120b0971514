"""A ranking: who comes first, and the rank that each variant has or may have."""

from collections.abc import Iterator, Mapping, Sequence

from webdyno.comparison.sentences import rank_words
from webdyno.core import format as text
from webdyno.core.judgement import Judgement
from webdyno.media.document import Figure, Headline, Paragraph
from webdyno.report.show import PointView, RunView, Show
from webdyno.report.words import as_headline

ABOUT_RANKS = (
    "A rank is a range where more than one is possible: it begins after all that are "
    "better, and ends before all that are worse. With 95% confidence all ranks hold "
    "together. Ratios are to the variant that is shown first, with CIs adjusted for the number of "
    "pairs."
)


class RankingShow(Show):
    """Ranks, where there are any."""

    def ranks(self, judged: Judgement) -> Mapping[str, str] | None:
        """Return the ranks, the best first, then variants that have none."""
        if judged.ranking is None:
            return None
        ranks = {rank.variant: rank_words(rank) for rank in judged.ranking.ranks}
        return ranks | dict.fromkeys(judged.ranking.out, text.MISSING)

    def answers(self, point: PointView) -> Sequence[Headline] | None:
        """Return one answer for all, and one for those without a rank."""
        judged = point.judgement
        if judged.ranking is None:
            return None
        without = {
            (each.verdict, each.why): None for each in point.on_deciding if each.ratio is None
        }
        return [
            Headline(judged.verdict, "RANKING", f"{judged.headline}."),
            *(as_headline(verdict, why) for verdict, why in without),
        ]

    def about_verdicts(self, view: RunView) -> Sequence[Paragraph] | None:
        return [Paragraph(ABOUT_RANKS, look="soft")] if view.has_ranks else None

    def adjustment(self, judged: Judgement) -> str | None:
        return "All ranks hold together at 95%." if judged.ranking else None

    def confidence(self, judged: Judgement) -> str | None:
        return "All ranks hold together with 95% confidence" if judged.ranking else None

    def results(self, point: PointView) -> Iterator[Figure]:
        """Draw the ranks."""
        from webdyno.questions.ranking.charts import ranking_figure

        if point.judgement.ranking and (figure := ranking_figure(point)):
            yield figure

    def figures(self, point: PointView) -> Iterator[Figure]:
        """Draw what the servers' CPU time is."""
        from webdyno.questions.ranking.charts import cpu_parts_figure

        if point.judgement.ranking and (figure := cpu_parts_figure(point)):
            yield figure
