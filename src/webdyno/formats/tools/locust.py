"""Locust: the tables on its console, printed again and again while it runs."""

from webdyno.formats.facts import Facts, Figures, Tool, patterns
from webdyno.formats.values import as_float

_NAME = r"(?:\S.{0,200}?)?\s{0,120}"


def _more(facts: Facts, _: Figures) -> Figures:
    heads = facts.texts.get("heads", "").replace("%", "").split()
    cells = facts.texts.get("cells", "").split()
    return {
        "percentiles_ms": {
            percent: time_ms
            for head, cell in zip(heads, cells, strict=False)
            if (percent := as_float(head)) is not None and (time_ms := as_float(cell)) is not None
        }
    }


LOCUST = Tool(
    name="locust",
    opening=r"(?:Type\s+)?Name\s+# reqs\s+# fails\s+\|",
    repeats=True,
    patterns=patterns(
        r"(?:Type\s+)?Name\s+# reqs\s+# fails\s+\|",
        r"(?:Aggregated|Total)\s+(?P<requests>INT)\s+(?P<failed>INT)\(NUM%\)\s+\|?\s*"
        r"(?P<mean_ms>INT)\s+INT\s+(?P<max_ms>INT)\s+\|?\s*INT\s+\|\s+(?P<throughput_rps>NUM)",
        rf"{_NAME}INT\s+INT\(NUM%\)\s+\|",
        r"(?:Type\s+)?Name\s+(?:# reqs\s+)?(?P<heads>\d{1,3}%(?:\s+\d[\d.]{0,8}%){3,20})(?:\s|$)",
        r"(?:Aggregated|Total)\s+(?P<cells>\d{1,9}(?:\s+\d{1,9}){4,20})\s+INT$",
        rf"{_NAME}\d{{1,9}}(?:\s+\d{{1,9}}){{5,20}}$",
    ),
    chatter=(
        *("-----", "Response time percentiles", "Shutting down", "Error report", "# occurrences"),
    ),
    more=_more,
)
