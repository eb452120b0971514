"""One cause is one warning with one fix: what follows from it isn't shown."""

import pytest

from builders import SimulatedVariant, response, simulated_run
from webdyno.core.judgement import ValidityWarning
from webdyno.core.records import Response
from webdyno.validity import warnings_of, without_consequences
from webdyno.validity.responses import fix_of_status, leads_to


def warning(rule: str, severity: str = "invalid", variant: str | None = "a") -> ValidityWarning:
    if severity == "invalid":
        return ValidityWarning(rule=rule, severity="invalid", variant=variant, what="w", fix="r")
    return ValidityWarning(rule=rule, severity="note", variant=variant, what="w", fix="r")


def kept(*found: ValidityWarning) -> list[str]:
    return [it.rule for it in without_consequences(found, "throughput_rps")]


def test_a_wrong_status_is_one_warning() -> None:
    run = simulated_run(
        {"a": SimulatedVariant(), "b": SimulatedVariant(wrong_status=404)}, rounds=6
    )
    assert [it.rule for it in warnings_of(run.data)] == ["wrong-status"]


def test_what_other_variants_do_explains_nothing() -> None:
    assert kept(warning("wrong-status", variant="b"), warning("non-2xx")) == [
        "wrong-status",
        "non-2xx",
    ]


def test_what_invalidates_nothing_explains_nothing() -> None:
    assert kept(warning("non-2xx", "note"), warning("few-samples")) == ["non-2xx", "few-samples"]


def test_a_short_run_is_reported_unless_more_of_it_would_show_the_same() -> None:
    short = warning("few-rounds", "note", None)
    assert kept(warning("steal", "note"), short) == ["steal", "few-rounds"]
    assert kept(warning("resets"), short) == ["resets"]
    of_p99 = warning("few-samples").model_copy(update={"metrics": ["latency_p99_us"]})
    assert kept(of_p99, short) == ["few-samples", "few-rounds"]


def got(status: int, *headers: tuple[str, str]) -> Response:
    changes = {"status": status, "headers": list(headers), "path": "/packs/app.js"}
    return response(SimulatedVariant()).model_copy(update=changes)


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("https://127.0.0.1/packs/app.js", "load.protocol=h2"),
        ("/login?next=/", "--path /login?next=/"),
        ("http://example.com/packs/app.js", "--host example.com"),
        ("http://[::1", "Ask for the page that it leads to"),
    ],
)
def test_a_redirect_shows_where_it_leads_and_what_to_set(location: str, says: str) -> None:
    redirect = got(301, ("Location", location))
    assert location in leads_to(redirect)
    said = fix_of_status(redirect, {301})
    assert says in said
    assert "status = 301" in said
    assert "alike" not in said


def test_a_redirect_with_a_cookie_asks_for_the_cookie() -> None:
    said = fix_of_status(got(302, ("location", "/login"), ("set-cookie", "session=1")), {302})
    assert "load.headers.Cookie" in said


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (204, "status = 204"),
        (401, "load.headers.Cookie"),
        (404, "by --path or --site"),
        (502, "passes requests on to"),
        (500, "its log is in the run's folder"),
    ],
)
def test_each_status_has_a_fix_of_its_own(status: int, says: str) -> None:
    assert says in fix_of_status(got(status), {status, 200})
