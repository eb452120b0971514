"""Settings of a testbed, as people write them and as runs keep them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from webdyno.core.testbed import TestbedSettings


@pytest.mark.parametrize(
    ("text", "bits_per_s"),
    [("100mbit", 1e8), ("1 Gbit", 1e9), ("1.5gbit/s", 1.5e9), ("64kbit", 64_000), (1_000_000, 1e6)],
)
def test_rates(text: str | int, bits_per_s: float) -> None:
    settings = TestbedSettings.model_validate({"kind": "netns", "link": text})
    assert settings.link == bits_per_s
    assert settings.link_bytes_per_s == bits_per_s / 8


@pytest.mark.parametrize(("text", "delay_s"), [("20ms", 0.02), ("500us", 5e-4), ("0.5 s", 0.5)])
def test_delays(text: str, delay_s: float) -> None:
    settings = TestbedSettings.model_validate({"kind": "netns", "delay": text})
    assert settings.delay == pytest.approx(delay_s)


@pytest.mark.parametrize(
    ("text", "share"), [("0.1%", 0.001), ("2%", 0.02), ("0.001", 0.001), (0.01, 0.01)]
)
def test_losses(text: str | float, share: float) -> None:
    settings = TestbedSettings.model_validate({"kind": "netns", "loss": text})
    assert settings.loss == pytest.approx(share)


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ({"kind": "netns", "link": "fast"}, "100mbit"),
        ({"kind": "netns", "link": "100"}, "from 1 kbit/s to 1000 Gbit/s"),
        ({"kind": "netns", "link": "1bit"}, "1 kbit/s"),
        ({"kind": "netns", "delay": "20"}, "from 0 s to 10 s"),
        ({"kind": "netns", "delay": "1000s"}, "10"),
        ({"kind": "netns", "loss": "90%"}, "from 0% to 50%"),
        ({"link": "100mbit"}, "--testbed netns"),
        ({"delay": "20ms"}, "--testbed netns"),
    ],
)
def test_what_is_wrong_is_reported_with_a_fix(wrong: dict[str, object], reported: str) -> None:
    with pytest.raises(ValidationError, match=reported):
        TestbedSettings.model_validate(wrong)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for setting in ("link", "delay", "loss"):
        try:
            TestbedSettings.model_validate({"kind": "netns", setting: text})
        except ValidationError as error:
            assert setting in str(error)  # noqa: PT017 (most texts are refused)


def test_what_a_run_keeps_reads_back() -> None:
    settings = TestbedSettings.model_validate(
        {"kind": "netns", "link": "100mbit", "delay": "20ms", "loss": "0.1%"}
    )
    assert TestbedSettings.model_validate_json(settings.model_dump_json()) == settings
