"""The pages of a league: files that ask the network for nothing."""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from webdyno.comparison.comparison import DELTA
from webdyno.comparison.sentences import places_of, rank_words
from webdyno.config import Catalogue
from webdyno.core import format as text
from webdyno.core.base import ENDLESS, Interval
from webdyno.core.files import write_whole
from webdyno.core.judgement import Ranking
from webdyno.core.metrics import CPU_TIME, METRICS
from webdyno.core.stack import Site, Stack
from webdyno.league.tables import (
    LATENCIES,
    MEMORY,
    Entry,
    Results,
    StackAbout,
    Standing,
    sheet_of,
)
from webdyno.league.words import (
    LIMITS,
    cells,
    headings,
    interval_words,
    joined_words,
    limit_words,
    load_words,
    machine_facts,
    machine_words,
    own_cells,
    own_headings,
    services_words,
    split_words,
)
from webdyno.media.page import templates_of
from webdyno.report.words import metric_label, metric_title

FIRST_SHOWN = 5
STEP_PX, COURSE_PX = 48, 120
BAR = 1000
NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]")
SHORT_DIGEST = 8
View = dict[str, Any]


class Pages:
    """All pages of a league."""

    def __init__(self, results: Results, catalogue: Catalogue) -> None:
        self.results = results
        self.catalogue = catalogue
        self.about = {each.name: each for each in results.stacks}
        self.machines = list(results.machines)
        self.tables = [self._table(standing) for standing in results.standings]
        self._shared = {
            "results": results,
            "brand": "webdyno league",
            "version": results.webdyno_version,
            "marks": [],
            "about": results.stacks,
            "tables": self.tables,
            "links": [{"file": table["file"], "words": table["heading"]} for table in self.tables],
            "runs": sum(standing.runs for standing in results.standings),
        }

    def write(self, folder: Path, below: Path | None = None) -> list[Path]:
        """Write all pages and data into a folder; return what was written, the first page first.

        `below`: a folder around it that others may have put links into.
        """
        written = {
            "index.html": self._drawn("index.html", "index.html", **self._overview()),
            "about.html": self._drawn(
                "about.html", "about.html", machines=self._machine_sections()
            ),
            "compare.html": self._drawn(
                "compare.html", "compare.html", pairs=self._pairs(), delta=text.percent(DELTA)
            ),
            "league.csv": sheet_of(self.results),
            "league.json": self.results.model_dump_json() + "\n",
        }
        for table in self.tables:
            written[table["file"]] = self._drawn("test.html", table["file"], table=table)
        for stack in self.results.stacks:
            file = _file_of(stack.name)
            written[file] = self._drawn("stack.html", file, stack=self._stack(stack))
        for name, content in written.items():
            write_whole(folder / name, content, below=below or folder)
        return [folder / name for name in written]

    def _drawn(self, template: str, file: str, **more: object) -> str:
        made = templates_of("webdyno.league").get_template(template)
        return made.render(self._shared | {"file": file} | more)

    def _file_of_table(self, standing: Standing) -> str:
        number = self.machines.index(standing.machine)
        return page_name(standing.task + (f"-m{number + 1}" if number else ""))

    def _heading(self, standing: Standing) -> str:
        number = self.machines.index(standing.machine)
        return _heading_of(standing) + (f", machine {number + 1}" if len(self.machines) > 1 else "")

    def _table(self, standing: Standing) -> View:
        """What the page of a task shows."""
        at_rate = self._at_rate(standing)
        rows = [self._row(entry, standing, at_rate) for entry in standing.entries]
        ranked = {row["about"].name: row for row in rows if row["rank"] != text.MISSING}
        ranks = [entry.rank for entry in standing.entries if entry.rank]
        places = places_of(Ranking(ranks=ranks, looks=1))
        metric = METRICS[standing.decide_on].metric
        site = self.catalogue.sites.get(standing.site)
        machine = self.results.machines[standing.machine]
        hidden = [rank for rank in ranks[FIRST_SHOWN:] if rank.best <= FIRST_SHOWN]
        return {
            "file": self._file_of_table(standing),
            "heading": self._heading(standing),
            "machine": f"{machine_words(machine)}; {split_words(machine)}",
            "what": site.title if site else standing.site,
            "extent": text.count(len(standing.entries), "stack"),
            "by": text.lower_first(metric_title(metric)),
            "unit": metric.unit if standing.rate_rps is None else "",
            "load": load_words(standing),
            "headings": headings(standing, at_rate),
            "places": [[ranked[rank.variant] for rank in place] for place in places],
            "first": list(ranked.values())[:FIRST_SHOWN],
            "tied": f"{len(hidden)} more may be among the first {FIRST_SHOWN}" if hidden else "",
            "out": [
                row | {"why": entry.out or "nothing of it counts"}
                for row, entry in zip(rows, standing.entries, strict=True)
                if entry.rank is None
            ],
            "confidence": f"All ranks of this table hold together with "
            f"{text.percent(standing.confidence)} confidence.",
            "joined": joined_words(standing),
        }

    def _row(self, entry: Entry, standing: Standing, at_rate: Standing | None) -> View:
        metric = standing.decide_on
        known = (other.on_scale.get(metric) for other in standing.entries)
        largest = max((figure.high for figure in known if figure), default=1.0)
        figure = entry.on_scale.get(metric)
        value, around = interval_words(metric, figure)
        return {
            "stack": entry.stack,
            "about": self.about[entry.stack],
            "file": _file_of(entry.stack),
            "rank": rank_words(entry.rank) if entry.rank else text.MISSING,
            "value": value,
            "around": around,
            "bar": [
                round(end / largest * BAR, 1) for end in (figure.low, figure.estimate, figure.high)
            ]
            if figure
            else None,
            "cells": list(cells(entry, standing, at_rate)),
            "limit": limit_words(entry),
            "services": services_words(entry, self._titles_of_site(standing.site)),
            "out": entry.out,
        }

    def _titles_of_site(self, name: str) -> dict[str, str]:
        """Return by role the titles of the services that a site brings, such as its database."""
        return _titles(self.catalogue.sites.get(name))

    def _at_rate(self, standing: Standing) -> Standing | None:
        """Return the same site at a common rate on the same machine, where it was measured."""
        if standing.rate_rps is not None:
            return None
        return next(
            (
                other
                for other in self.results.standings
                if (other.site, other.machine) == (standing.site, standing.machine)
                and other.rate_rps is not None
            ),
            None,
        )

    def _overview(self) -> View:
        """What the first page shows: each test's first ones, and all ranks."""
        matrices = []
        for machine in self.machines:
            here = [each for each in self.results.standings if each.machine == machine]
            ranks = {
                (entry.stack, standing.task): rank_words(entry.rank) if entry.rank else "out"
                for standing in here
                for entry in standing.entries
            }
            stacks = [each for each in self.results.stacks if any(each.name == s for s, _ in ranks)]
            matrices.append(
                {
                    "machine": machine_words(self.results.machines[machine]),
                    "about": f"Measured on {machine_words(self.results.machines[machine])}. "
                    "Press a heading to sort. Blank: not measured there; out: without a rank, for "
                    "the reason on the test's page.",
                    "headings": [_heading_of(standing) for standing in here],
                    "rows": [
                        {
                            "about": stack,
                            "file": _file_of(stack.name),
                            "cells": [ranks.get((stack.name, each.task), "") for each in here],
                        }
                        for stack in stacks
                    ],
                }
            )
        standings = len(self.results.standings)
        return {
            "matrices": matrices,
            "agreements": list(self._agreement_words()),
            "extent": f"{text.count(len(self.about), 'stack')}, {text.count(standings, 'test')}",
        }

    def _agreement_words(self) -> Iterator[str]:
        for each in self.results.agreements:
            first, second = (self.machines.index(name) + 1 for name in each.machines)
            swapped = "; ".join(f"{ahead} and {behind}" for ahead, behind in each.swapped)
            agrees = f"they don't agree about {swapped}" if each.swapped else "they agree"
            yield (
                f"{each.words}, machines {first} and {second}: {agrees}. "
                f"{text.count(each.same, 'pair')} in the same order, {each.open} open in one or "
                "both."
            )

    def _stack(self, about: StackAbout) -> View:
        """What the page of a stack shows."""
        rows, past, facts = [], [], dict[str, str]()
        known = self.catalogue.stacks.get(about.name)
        titles = _titles(known)
        rated = any(standing.rate_rps is not None for standing in self.results.standings)
        for standing in self.results.standings:
            for entry in standing.entries:
                if entry.stack != about.name:
                    continue
                at_rate = self._at_rate(standing)
                heading = self._heading(standing)
                titles |= self._titles_of_site(standing.site)
                measured = entry.figures.get(standing.decide_on)
                value, around = interval_words(standing.decide_on, measured)
                of_entry = {
                    "value": value,
                    "around": around,
                    "heading": heading,
                    "date": f"{entry.measured_at:%Y-%m-%d}",
                    "run": entry.run,
                    "webdyno_version": entry.webdyno_version,
                    "load_generator": entry.load_generator,
                    "command": entry.command,
                    "file": self._file_of_table(standing),
                }
                row = self._row(entry, standing, at_rate) | of_entry
                rows.append(row | {"cells": list(own_cells(entry, standing, at_rate, rated))})
                past.append(_course(heading, standing.decide_on, entry))
                facts |= {
                    f"version of {titles.get(role, role)}": said
                    for role, said in entry.versions.items()
                }
                facts |= entry.facts
        return {
            "about": about,
            "rows": rows,
            "past": past,
            "facts": list(facts.items()),
            "headings": own_headings(rated),
            "source": list(_source(known)),
        }

    def _machine_sections(self) -> list[View]:
        return [
            {
                "heading": f"Machine {number}" if len(self.machines) > 1 else "Machine",
                "facts": machine_facts(machine),
            }
            for number, machine in enumerate(self.results.machines.values(), start=1)
        ]

    def _pairs(self) -> str:
        """What the page that compares two knows: figures as words, pairs as numbers."""
        tests = []
        for standing in self.results.standings:
            latencies = () if standing.rate_rps is None else LATENCIES
            metrics = list(dict.fromkeys([standing.decide_on, CPU_TIME, MEMORY, *latencies]))
            place = {e.stack: n for n, e in enumerate(e for e in standing.entries if e.rank)}
            pairs: list[list[object]] = [[None] * (len(place) - n - 1) for n in range(len(place))]
            for pair in standing.pairs:
                first, second = place[pair.a], place[pair.b]
                pairs[first][second - first - 1] = [str(pair.verdict), *_ends(pair.ratio)]
            tests.append(
                {
                    "words": self._heading(standing),
                    "metrics": [metric_label(METRICS[metric].metric) for metric in metrics],
                    "stacks": {
                        entry.stack: {
                            "place": place.get(entry.stack),
                            "figures": [
                                interval_words(metric, entry.in_table(metric))[0]
                                for metric in metrics
                            ],
                            "limit": LIMITS.get(entry.limited_by or ""),
                        }
                        for entry in standing.entries
                    },
                    "pairs": pairs,
                }
            )
        # No text in it may end the element that it stands in.
        return json.dumps(tests, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _ends(ratio: Interval | None) -> list[float | None]:
    """Return a ratio to three digits; 0 and None are ends that a limit leaves open."""
    if ratio is None:
        return []
    low, estimate, high = (float(f"{end:.3g}") for end in (ratio.low, ratio.estimate, ratio.high))
    return [low if low > 1 / ENDLESS else 0, estimate, high if high < ENDLESS else None]


def _course(heading: str, metric: str, entry: Entry) -> View:
    """What became of a stack's rank, run after run."""
    points = []
    for past in entry.over_time:
        value, around = interval_words(metric, past.figure)
        rank = f"{rank_words(past.rank)} of {past.of}" if past.rank else text.MISSING
        date = f"{past.at:%Y-%m-%d %H:%M}"
        points.append({"date": date, "rank": rank, "value": value, "around": around})
    return {"heading": heading, "points": points, "chart": _chart(entry)}


def _chart(entry: Entry) -> View | None:
    ranked = [past for past in entry.over_time if past.rank]
    if len(ranked) < 2:
        return None
    most = max(past.of for past in ranked)
    room = COURSE_PX - 20

    def height(rank: float) -> float:
        return round(10 + room * (rank - 1) / max(most - 1, 1), 1)

    points = [
        {
            "x": STEP_PX + number * STEP_PX,
            "best": height(past.rank.best - 0.3),
            "worst": height(past.rank.worst + 0.3),
            "middle": height((past.rank.best + past.rank.worst) / 2),
            "said": f"{past.at:%Y-%m-%d}: {rank_words(past.rank)} of {past.of}",
        }
        for number, past in enumerate(ranked)
        if past.rank
    ]
    scale = [("1st", height(1)), (f"{most}.", height(most))]
    return {"width": STEP_PX * (len(points) + 1), "points": points, "scale": scale}


def _titles(known: Stack | Site | None) -> dict[str, str]:
    return {role: each.service.title for role, each in known.services.items()} if known else {}


def _source(stack: Stack | None) -> Iterator[tuple[str, str]]:
    """Yield the files of the catalog that say what a stack is, with their text."""
    if stack is None:
        return
    files = [stack.folder / "stack.toml"]
    files += [role.service.folder / "service.toml" for role in stack.services.values()]
    for file in dict.fromkeys(files):
        if file.is_file():
            yield "/".join(file.parts[-3:]), file.read_text()


def _heading_of(standing: Standing) -> str:
    return text.upper_first(standing.words).replace("Json ", "JSON ")


def _file_of(stack: str) -> str:
    return page_name(f"stack-{stack}")


def page_name(name: str) -> str:
    """Return a page's file name, which leads nowhere else and needs no quotes in a link."""
    plain = NOT_PLAIN.sub("-", name)
    digest = sha256(name.encode()).hexdigest()[:SHORT_DIGEST]
    return f"{plain}.html" if plain == name else f"{plain}-{digest}.html"
