"""The pages and what they ask for."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from math import exp, inf
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ExceptionHandler

from webdyno.comparison import question_of
from webdyno.comparison.runs import compare_sweeps
from webdyno.comparison.sentences import ratio_words
from webdyno.config import Catalogue
from webdyno.core.errors import OperationError, UserError
from webdyno.core.format import DASH, duration, percent, significant
from webdyno.core.judgement import Comparison
from webdyno.core.metrics import METRICS
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.interfaces.ui.guard import LOOPBACK, REPORT, REPORTS, Addresses, Defect, Guard
from webdyno.interfaces.ui.runs import (
    Runs,
    Version,
    in_one_line,
    page_of,
    seen,
    state_of,
    version_of,
)
from webdyno.interfaces.ui.starting import FIELDS, OWN, Starter, comparison_asked
from webdyno.measure.folder import RunFolder
from webdyno.media.document import Document
from webdyno.media.page import draw_blocks, style_sheet, templates_of
from webdyno.report.brief import summary
from webdyno.report.conditions import when
from webdyno.report.exports import summary_csv
from webdyno.report.run_comparison import comparison_document
from webdyno.report.words import metric_title
from webdyno.servers.needs import is_installed
from webdyno.validity import excluded_words, used_s

LOOKED_AT_S = 1.0
USUAL = ("nginx", "apache-event")
"""What the form compares unless somebody chooses, where it is installed."""


def make_app(
    runs: Runs,
    catalogue: Catalogue,
    starter: Starter,
    token: str,
    port: int,
    defect: Defect,
    address: str = LOOPBACK,
) -> Starlette:
    """Make the application that serves the runs of a folder at an address and port of ours.

    `defect` is given the exceptions that nobody foresaw.
    """
    addresses = Addresses(token)
    pages = _Pages(runs, catalogue, starter, addresses)
    reports = _Reports(runs, addresses)
    with_token = [
        Route("/", pages.list),
        Route("/new", pages.new),
        Route("/begin", pages.begin, methods=["POST"]),
        Route("/stop", pages.stop, methods=["POST"]),
        Route("/compare", pages.compare),
        Route("/verdict/{name:path}", pages.verdict),
        Route("/live/{name:path}", pages.live),
        Route("/events/{name:path}", pages.events),
        Route("/export/{kind}/{name:path}", pages.export),
        Route("/style.css", pages.style),
        Mount("/static", StaticFiles(packages=[("webdyno.interfaces.ui", "static")])),
    ]
    refusing = [Middleware(ExceptionMiddleware, handlers=_refusals(pages.message))]
    return Starlette(
        routes=[
            Mount(addresses.page(), routes=with_token, middleware=refusing),
            Route(f"/{REPORT}/{{seal}}/{{name:path}}", reports.report),
        ],
        middleware=[
            Middleware(Guard, addresses=addresses, port=port, defect=defect, address=address)
        ],
        exception_handlers=_refusals(reports.message),
    )


def _refusals(message: Callable[[str, int], Response]) -> Mapping[Any, ExceptionHandler]:
    """Show errors by pages of one kind, each of a text and a status: with the token, or without."""

    def refuse(_: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            return message(error.detail, error.status_code)
        return message(str(error), 400 if isinstance(error, UserError) else 500)

    return dict.fromkeys((UserError, OperationError, HTTPException), refuse)


class _Reports:
    """What is shown to who may not know the token: no page of these has a link."""

    def __init__(self, runs: Runs, addresses: Addresses) -> None:
        self._runs = runs
        self._is_sealed = addresses.is_sealed
        self._outside = templates_of("webdyno.interfaces.ui").get_template("outside.html")

    def message(self, said: str, status: int) -> Response:
        return HTMLResponse(self._outside.render(said=said), status)

    async def report(self, request: Request) -> Response:
        """Send a run's report."""
        name = request.path_params["name"]
        if not self._is_sealed(request.path_params["seal"], name):
            raise HTTPException(403, "open the address that `webdyno ui` printed")
        page = await run_in_threadpool(page_of, self._runs.open(name))
        return HTMLResponse(page, headers={"content-security-policy": REPORTS})


class _Pages:
    def __init__(
        self, runs: Runs, catalogue: Catalogue, starter: Starter, addresses: Addresses
    ) -> None:
        self._runs = runs
        self._addresses = addresses
        self._catalogue = catalogue
        self._starter = starter
        self._templates = templates_of("webdyno.interfaces.ui")

    def _page(self, template: str, status: int = 200, **given: object) -> HTMLResponse:
        made = self._templates.get_template(template).render(
            root=self._runs.root,
            when=when,
            page=self._addresses.page,
            report=self._addresses.report,
            **given,
        )
        return HTMLResponse(made, status)

    def message(self, said: str, status: int) -> Response:
        return self._page("message.html", status, said=said)

    async def list(self, _: Request) -> Response:
        """Show all runs."""
        runs = await run_in_threadpool(self._runs.list)
        return self._page("runs.html", runs=runs, starter=self._starter)

    async def new(self, _: Request) -> Response:
        """Ask what is to be compared."""
        stacks = self._catalogue.stacks
        here = await run_in_threadpool(
            lambda: [name for name, stack in stacks.items() if is_installed(stack)]
        )
        return self._page(
            "new.html",
            installed=here,
            chosen=list(dict.fromkeys([*(name for name in USUAL if name in here), *here])),
            others=[name for name in stacks if name not in here],
            sites=list(self._catalogue.sites),
            own=OWN,
            starter=self._starter,
        )

    async def begin(self, request: Request) -> Response:
        """Start a comparison."""
        async with request.form() as form:
            given = {key: str(form.get(key, "")).strip() for key in FIELDS}
        asked = comparison_asked(given, self._catalogue, self._runs.root)
        begun = await run_in_threadpool(self._starter.begin, "compare", asked.arguments, asked.own)
        return RedirectResponse(self._addresses.page("live", begun.name), 303)

    async def stop(self, _: Request) -> Response:
        """End the run that was begun here with what there is."""
        self._starter.interrupt()
        return RedirectResponse(self._addresses.page(), 303)

    async def compare(self, request: Request) -> Response:
        """Show what changed between two runs of one experiment."""
        names = request.query_params.getlist("run")
        if len(names) != 2:
            raise UserError("choose two runs of the same experiment to compare them")
        folders = sorted(map(self._runs.open, names), key=lambda name: name.head.started_at)
        comparison = await run_in_threadpool(_compare, folders)
        drawn = draw_blocks(comparison.blocks)
        return self._page("compare.html", folders=folders, title=comparison.title, drawn=drawn)

    async def style(self, _: Request) -> Response:
        """Send the reports' style sheet, which our pages have as well."""
        return PlainTextResponse(style_sheet(), media_type="text/css")

    async def verdict(self, request: Request) -> Response:
        """Send a run's verdict and headline."""
        folder = self._runs.open(request.path_params["name"])
        _, view = await run_in_threadpool(seen, folder)
        return JSONResponse(in_one_line(view)._asdict())

    async def live(self, request: Request) -> Response:
        """Show a run under way; one that has ended shows its report."""
        name = request.path_params["name"]
        last = self._starter.last
        begun = last if last is not None and last.name == name else None
        try:
            folder = self._runs.open(name)
        except UserError:
            if begun is None:
                raise
            going = self._starter.is_busy
            return self._page("starting.html", name=name, said=begun.said, going=going)
        if state_of(folder.path) == "ended" and not (begun and self._starter.is_busy):
            return RedirectResponse(self._addresses.report(name), 303)
        return self._page("live.html", name=name, head=folder.head, is_ours=begun is not None)

    async def events(self, request: Request) -> Response:
        """Send what is new of a run."""
        folder = self._runs.open(request.path_params["name"])
        return StreamingResponse(events(folder), media_type="text/event-stream")

    async def export(self, request: Request) -> Response:
        """Send a run as a file."""
        kind = request.path_params["kind"]
        folder = self._runs.open(request.path_params["name"])
        judged, view = await run_in_threadpool(seen, folder)
        kinds: dict[str, tuple[Callable[[], str], str]] = {
            "csv": (lambda: summary_csv(view), "text/csv"),
            "md": (lambda: summary(view), "text/markdown"),
            "json": (lambda: judged.model_dump_json(indent=2), "application/json"),
        }
        if kind not in kinds:
            raise UserError(f"{kind!r:.20}: there are {', '.join(kinds)}")
        make, media = kinds[kind]
        name = f"attachment; filename*=utf-8''{quote(folder.path.name)}.{kind}"
        return PlainTextResponse(
            await run_in_threadpool(make), media_type=media, headers={"content-disposition": name}
        )


def _compare(folders: Sequence[RunFolder]) -> Document:
    compared = compare_sweeps(*(folder.data() for folder in folders))
    return comparison_document(folders[1].head, compared)


async def events(folder: RunFolder) -> AsyncIterator[str]:
    """Return server-sent events: what is known now, after each change, until the run has ended."""
    sent: Version | None = None
    while True:
        running = state_of(folder.path) == "running"
        version = version_of(folder.path)
        if version != sent or not running:
            sent = version
            state = await run_in_threadpool(snapshot, folder)
            yield f"data: {json.dumps(state | {'running': running})}\n\n"
        if not running:
            return
        await asyncio.sleep(LOOKED_AT_S)


def snapshot(folder: RunFolder) -> dict[str, Any]:
    """Return where a run is, and what its rounds gave so far; no verdict."""
    run = folder.data()
    slots = [record for record in run.records if isinstance(record, SlotRecord)]
    doing = "each variant alone, before the rounds"
    if slots:
        doing = f"round {slots[-1].round + 1}, {slots[-1].variant}"
    return {"points": [_point(data) for data in run.points], "doing": doing}


def _point(data: PointData) -> dict[str, Any]:
    question = question_of(data.experiment)
    metric = METRICS[data.measure.decide_on].metric
    compared = question.ratios_so_far(data)
    measure = data.measure
    known: dict[str, Any] = {
        "label": data.point.label,
        "metric": metric_title(metric),
        "better": "more" if metric.better == "higher" else "less",
        "rounds": len(data.rounds),
        "excluded": excluded_words(data),
        "ratios": ratio_words(compared),
        "curves": _curves(compared),
        "took": duration(round(used_s(data))),
    }
    if measure.limit_s < inf:
        known["left_at_most"] = duration(max(round(measure.limit_s - used_s(data)), 0))
    foreseen = question.foresee(data)
    if foreseen is None:
        return known
    if foreseen.can_be_kept(data):
        known |= {"expected": foreseen.rounds, "left": duration(round(foreseen.left_s))}
    half = exp(foreseen.wanted)
    return known | {"wanted": percent(half - 1)}


def _curves(compared: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return for each ratio that of each round, and its CI so far."""
    return [
        {
            "name": f"{comparison.a} \u00f7 {comparison.b}",
            "rounds": comparison.by_round,
            "low": comparison.decisive.low,
            "high": comparison.decisive.high,
            "told": f"CI so far {significant(comparison.decisive.low, 3)}{DASH}"
            f"{significant(comparison.decisive.high, 3)}",
        }
        for comparison in compared
        if comparison.ratio and comparison.decisive
    ]
