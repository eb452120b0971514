"""Rules about what the variants answered before the load."""

from typing import Any

import pytest

from builders import SimulatedVariant, response, run_head, simulated_run
from webdyno.comparison import judge
from webdyno.core.judgement import ValidityWarning
from webdyno.core.records import PreflightRecord, Response
from webdyno.core.run import RunHead
from webdyno.evidence.point_data import PointData
from webdyno.questions.explain.settings import Intervention, LimitsSettings
from webdyno.validity import warnings_of
from webdyno.validity.preflight import response_differences

FORBIDDEN = """<?xml version="1.0"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0//EN"><html><head><title>403 Forbidden</title>
<style>h1 { color: red }</style></head><p>It&apos;s so<p cla"""
HEAD = run_head({"nginx": "nginx", "apache": "apache-event"})


def found(*responses: tuple[Response, Response]) -> list[ValidityWarning]:
    """What the rules say of pre-flight checks: the responses of nginx and apache in each round."""
    records = [
        PreflightRecord(round=this_round, responses={"nginx": [nginx], "apache": [apache]})
        for this_round, (nginx, apache) in enumerate(responses)
    ]
    return [f for f in warnings_of(PointData.of(HEAD, records)) if f.rule != "few-rounds"]


def answered(**changes: Any) -> Response:  # noqa: ANN401
    """A valid response, but for the changes."""
    return response(SimulatedVariant()).model_copy(update=changes)


def test_equal_answers_are_fine() -> None:
    assert found((answered(), answered())) == []


def test_a_wrong_status_names_variant_path_and_code() -> None:
    (warning,) = found((answered(), answered(path="/missing.txt", status=404)))
    assert (warning.rule, warning.severity, warning.variant) == (
        "wrong-status",
        "invalid",
        "apache",
    )
    assert warning.what == (
        "variant apache answered 404 to /missing.txt, 200 was expected; it says 'Hello, World!'"
    )


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (FORBIDDEN, """; it says "403 Forbidden It's so\""""),
        ("<!DOCTYPE html><html><head><script>if (a < b) {", ""),
        ('{"error": "<none>"}', """; it says '{"error": "<none>"}'"""),
    ],
)
def test_a_wrong_page_is_shown_without_its_markup(page: str, words: str) -> None:
    (warning,) = found((answered(), answered(status=403, body_start=page)))
    assert warning.what.endswith(f"200 was expected{words}")


def test_no_answer_shows_why() -> None:
    (warning,) = found((answered(status=None, error="connection refused"), answered()))
    assert (warning.rule, warning.variant) == ("no-response", "nginx")
    assert "connection refused" in warning.what


def test_another_body_is_reported_with_its_size() -> None:
    (warning,) = found((answered(), answered(body_sha256="0" * 64, body_bytes=12)))
    assert (warning.rule, warning.variant) == ("different-body", "apache")
    assert "12 bytes, 13 were expected" in warning.what


def test_a_mistake_in_every_round_is_reported_once() -> None:
    wrong = (answered(), answered(status=403))
    assert len(found(wrong, wrong, wrong)) == 1


def free(body_bytes: int, body: str) -> Response:
    """A response whose site doesn't say what is right."""
    return answered(
        expected_sha256=None, expected_bytes=None, body_bytes=body_bytes, body_sha256=body * 64
    )


def test_bodies_that_may_vary_must_still_have_about_one_size() -> None:
    (warning,) = found((free(10_000, "1"), free(3_000, "3")))
    assert (warning.rule, warning.severity) == ("different-body", "invalid")
    assert "10,000 and 3,000 bytes" in warning.what


def test_bodies_that_differ_from_variant_to_variant_where_they_may_are_reported() -> None:
    pair = free(785, "1"), free(784, "2")
    (warning,) = found(pair, pair, pair)
    assert (warning.rule, warning.severity, warning.variant) == ("unlike-bodies", "note", "apache")
    assert "/hello.txt with another body than nginx (785 and 784 bytes)" in warning.what
    timed = pair[1].replace(fields_other=["items.*.at"], others_are_times=True)
    (warning,) = found((pair[0], timed), (pair[0], timed), (pair[0], timed))
    assert "items.*.at alone differ, which are times that set-up made," in warning.what
    assert "--ignore '$.items[*].at' lets them" in warning.what


def test_bodies_that_differ_from_answer_to_answer_are_not() -> None:
    assert found((free(785, "1"), free(784, "2")), (free(785, "3"), free(784, "4"))) == []


def test_variants_that_are_asked_for_different_pages_are_not_compared() -> None:
    other = {"path": "/100.txt", "body_bytes": 100, "body_sha256": "4" * 64}
    (warning,) = found((answered(), answered(**other, expected_sha256="4" * 64)))
    assert (warning.rule, warning.variant) == ("different-body", "apache")
    assert "/hello.txt and /100.txt" in warning.what


def test_variants_must_be_asked_for_equally_many_paths() -> None:
    records = [PreflightRecord(round=0, responses={"nginx": [answered()], "apache": []})]
    rules = [warning.rule for warning in warnings_of(PointData.of(HEAD, records))]
    assert "different-body" in rules


def test_variants_that_rightly_serve_different_pages_are_reported_apart() -> None:
    other = {"path": "/100.txt", "expected_sha256": "4" * 64, "body_sha256": "4" * 64}
    (warning,) = found((answered(), answered(**other, body_bytes=100)))
    assert (warning.rule, warning.variant) == ("different-body", "apache")
    assert "/100.txt" in warning.what
    assert "13 and 100 bytes" in warning.what


def asked_for(**of_apache: Any) -> RunHead:  # noqa: ANN401
    """A run whose Apache differs from nginx as the experiment says."""
    variants = HEAD.experiment.variants
    changed = {**variants, "apache": variants["apache"].model_copy(update=of_apache)}
    experiment = HEAD.experiment.model_copy(update={"variants": changed})
    return HEAD.model_copy(update={"experiment": experiment})


def preflight(nginx: Response, apache: Response) -> PreflightRecord:
    return PreflightRecord(round=0, responses={"nginx": [nginx], "apache": [apache]})


def test_pages_that_the_experiment_asks_for_may_differ_and_that_is_noted() -> None:
    other = {"path": "/100.txt", "expected_sha256": "4" * 64, "body_sha256": "4" * 64}
    head = asked_for(load={"paths": ["/100.txt"], "connections": 8})
    found = warnings_of(
        PointData.of(head, [preflight(answered(), answered(**other, body_bytes=100))])
    )
    (noted,) = (f for f in found if f.rule != "few-rounds")
    assert (noted.rule, noted.severity, noted.variant) == ("asked-difference", "note", "apache")
    assert "load.paths: /100.txt, not /hello.txt" in noted.what
    assert "load.connections: 8, not 64" in noted.what


def test_what_a_variant_has_less_of_on_purpose_is_no_warning() -> None:
    head = asked_for(load={"connections": 8})
    less = {"apache": Intervention(resource="connections", share=8 / 64)}
    experiment = head.experiment.replace(asks=LimitsSettings(interventions=less))
    head = head.model_copy(update={"experiment": experiment})
    found = warnings_of(PointData.of(head, [preflight(answered(), answered())]))
    assert [it.rule for it in found if it.rule != "few-rounds"] == []


def test_what_is_not_asked_to_differ_is_still_checked() -> None:
    other_load, other_page = asked_for(load={"connections": 8}), asked_for(paths=["/100.txt"])
    pair = preflight(free(10_000, "1"), free(3_000, "3"))
    assert "different-body" in {f.rule for f in warnings_of(PointData.of(other_load, [pair]))}
    assert "different-body" not in {f.rule for f in warnings_of(PointData.of(other_page, [pair]))}
    wrong = preflight(answered(), answered(path="/100.txt", status=404))
    assert "wrong-status" in {f.rule for f in warnings_of(PointData.of(other_page, [wrong]))}


def test_another_cipher_than_the_baseline_s_is_reported() -> None:
    run = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=6)
    preflight = run.records[0]
    assert isinstance(preflight, PreflightRecord)
    ciphers = {"a": "TLSv1.3, TLS_AES_256_GCM_SHA384", "b": "TLSv1.3, TLS_AES_128_GCM_SHA256"}
    responses = {
        variant: [it.model_copy(update={"tls": ciphers[variant]}) for it in reported]
        for variant, reported in preflight.responses.items()
    }
    other = preflight.model_copy(update={"responses": responses})
    found = judge(PointData.of(run.head, [other, *run.records[1:]])).warnings
    (noted,) = [it for it in found if it.rule == "unlike-tls"]
    assert noted.variant == "b"
    assert "TLS_AES_128_GCM_SHA256" in noted.what
    assert not [it for it in judge(run.data).warnings if it.rule == "unlike-tls"]


def test_a_program_sent_as_its_source_is_no_answer() -> None:
    source = answered(body_start="\ufeff<?php\necho 1;", expected_sha256=None, expected_bytes=None)
    warnings = found((source, source))
    assert [(it.rule, it.variant) for it in warnings] == [
        ("source-code", "nginx"),
        ("source-code", "apache"),
    ]
    promised = source.model_copy(update={"expected_sha256": source.body_sha256})
    assert found((promised, promised)) == []


def test_other_bodies_are_reported_and_measured_where_that_may_be() -> None:
    experiment = HEAD.experiment.model_copy(update={"same_bodies": False})
    changed = free(10_000, "1"), free(3_000, "3")
    records = [preflight(*changed)]
    found = warnings_of(PointData.of(HEAD.model_copy(update={"experiment": experiment}), records))
    (noted,) = (it for it in found if it.rule != "few-rounds")
    assert (noted.rule, noted.severity) == ("unlike-bodies", "note")
    assert "10,000 and 3,000 bytes" in noted.what
    assert "--same-bodies" in noted.fix
    assert response_differences(records[0], experiment) == []
    declared = answered(body_sha256="0" * 64), answered()
    assert response_differences(preflight(*declared), experiment)
    assert response_differences(preflight(free(10, "1"), answered(status=404)), experiment)


def test_a_header_that_is_missing_is_named() -> None:
    (warning,) = found((answered(), answered(lacks_header="Date: there is none")))
    assert (warning.rule, warning.severity, warning.variant) == (
        "missing-header",
        "invalid",
        "apache",
    )
    assert "answered /hello.txt without the right header Date: there is none" in warning.what


def test_a_broken_rule_of_the_site_is_reported() -> None:
    both = {"nginx": [answered()], "apache": [answered()]}
    record = PreflightRecord(round=0, responses=both, broken_rules={"apache": "rows are cached"})
    (warning,) = response_differences(record, HEAD.experiment)
    assert (warning.rule, warning.severity) == ("broken-rule", "invalid")
    assert warning.what == "variant apache breaks a rule of site static: rows are cached"


def test_bodies_of_a_site_with_rules_may_have_other_lengths() -> None:
    pair = (
        free(1_000, "1").model_copy(update={"has_rules": True}),
        free(1_500, "2").model_copy(update={"has_rules": True}),
    )
    assert found(pair, pair) == []
