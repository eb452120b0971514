from builders import SimulatedVariant, point_data, preflight_record
from webdyno.core.records import PreflightRecord
from webdyno.report.around_rounds import preflight_of


def shown(*records: PreflightRecord) -> dict[str, dict[str, str]]:
    found = preflight_of(point_data(records))
    return {line.what: line.by_variant for line in found.shown}


def test_no_preflight_check_was_made() -> None:
    assert not preflight_of(point_data([])).variants


def test_variants_that_are_alike_show_nothing() -> None:
    found = preflight_of(
        point_data([preflight_record({"a": SimulatedVariant(), "b": SimulatedVariant()})])
    )
    assert found.shown == []
    assert {"status", "body", "head", "workers"} <= set(found.alike)


def test_headers_that_matter_are_shown_and_others_are_not() -> None:
    plain = SimulatedVariant(headers=(("Server", "a"), ("Content-Length", "13")))
    chunked = SimulatedVariant(headers=(("server", "b"), ("transfer-encoding", "chunked")))
    differences = shown(preflight_record({"plain": plain, "chunked": chunked}))
    assert differences == {
        "Content-Length": {"plain": "13", "chunked": "—"},
        "Transfer-Encoding": {"plain": "—", "chunked": "chunked"},
    }


def test_wrong_on_every_variant_is_shown_although_nothing_differs() -> None:
    wrong = SimulatedVariant(wrong_status=404, body=b"Not Found")
    found = preflight_of(point_data([preflight_record({"a": wrong, "b": wrong})]))
    assert {line.what for line in found.shown if line.wrong} == {"status", "body"}


def test_an_error_page_is_recognisable() -> None:
    right, wrong = (
        SimulatedVariant(),
        SimulatedVariant(wrong_status=403, body=b"<title>Forbidden</title>"),
    )
    differences = shown(preflight_record({"right": right, "wrong": wrong}))
    assert differences["status"] == {"right": "200", "wrong": "403, not 200"}
    assert "<title>Forbidden</title>" in differences["body"]["wrong"]
    assert "Hello" not in differences["body"]["right"]


def test_a_compressed_body_is_reported_with_both_lengths() -> None:
    record = preflight_record({"plain": SimulatedVariant(), "gzip": SimulatedVariant()})
    packed = record.responses["gzip"][0].model_copy(update={"encoding": "gzip", "wire_bytes": 9})
    responses = record.responses | {"gzip": [packed]}
    differences = shown(record.model_copy(update={"responses": responses}))
    assert differences["body"]["gzip"].endswith("…, 9 bytes as gzip")
    assert differences["body"]["plain"].endswith("…")


def test_no_answer_says_why() -> None:
    record = preflight_record({"up": SimulatedVariant(), "down": SimulatedVariant()})
    gone = record.responses["down"][0].model_copy(
        update={"status": None, "error": "connection refused", "headers": []}
    )
    responses = record.responses | {"down": [gone]}
    differences = shown(record.model_copy(update={"responses": responses}))
    assert differences["status"]["down"] == "connection refused"


def test_settings_are_compared_even_where_one_variant_lacks_them() -> None:
    record = preflight_record({"a": SimulatedVariant(), "b": SimulatedVariant()})
    settings = {"a": {"workers": "2", "sendfile": "on"}, "b": {"workers": "4"}}
    differences = shown(record.model_copy(update={"facts": settings}))
    assert differences == {
        "workers": {"a": "2", "b": "4"},
        "sendfile": {"a": "on", "b": "—"},
    }


def test_what_differs_only_in_a_later_round_is_shown() -> None:
    variants = {"a": SimulatedVariant(), "b": SimulatedVariant()}
    later = variants | {"b": SimulatedVariant(body=b"Hello, again")}
    differences = shown(preflight_record(variants), preflight_record(later, round_number=1))
    assert set(differences) == {"body"}


def test_variants_with_paths_of_their_own_are_compared_request_by_request() -> None:
    record = preflight_record({"small": SimulatedVariant(), "large": SimulatedVariant()})
    large = record.responses["large"][0].model_copy(
        update={"path": "/large.txt", "body_bytes": 102_400, "body_sha256": "f" * 64}
    )
    both = record.model_copy(update={"responses": record.responses | {"large": [large]}})
    found = preflight_of(point_data([both]))
    assert {line.about for line in found.shown} == {"/hello.txt, /large.txt"}
    assert {line.what for line in found.shown} == {"path", "body"}


def test_a_variant_that_was_asked_less_is_shown_as_missing() -> None:
    record = preflight_record({"a": SimulatedVariant(), "b": SimulatedVariant()})
    differences = shown(record.model_copy(update={"responses": record.responses | {"b": []}}))
    assert differences["status"] == {"a": "200", "b": "—"}
