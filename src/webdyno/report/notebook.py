"""What notebooks show of a run: a few lines of HTML, in which all that others wrote is escaped."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from webdyno.model import format as text
from webdyno.report.view import RunView
from webdyno.report.words import SIGNS

MOST_ROWS = 60


def result_html(
    view: RunView, headline: str, rows: Sequence[Mapping[str, object]], charts: Sequence[str]
) -> str:
    """Show a run: its answer, the rows, and charts as SVG of our own."""
    signs = " ".join(dict.fromkeys(SIGNS[point.judgement.verdict] for point in view.points))
    drawn = "".join(charts)
    return f"{answer_html(f'{signs} {headline}', rows)}{drawn}"


def answer_html(headline: str, rows: Sequence[Mapping[str, object]]) -> str:
    """Show a sentence above a table."""
    return Markup("<p><b>{}</b></p>{}").format(headline, Markup(table_html(rows)))  # noqa: S704


def table_html(rows: Sequence[Mapping[str, object]]) -> str:
    """Show rows that have the same keys; of very many only the first."""
    if not rows:
        return ""
    heads = "".join(f"<th>{escape(key)}</th>" for key in rows[0])
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(_shown(value))}</td>' for value in row.values())}</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = f"<p>{len(rows) - MOST_ROWS:,} more rows</p>" if len(rows) > MOST_ROWS else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>{more}"


def _shown(value: object) -> str:
    if value is None:
        return text.MISSING
    return text.significant(value) if isinstance(value, float) else str(value)
