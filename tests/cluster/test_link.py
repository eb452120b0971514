"""Links between two ends that are both here."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from webdyno.cluster import agent


def test_a_link_is_timed_by_one_of_its_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "SENDS_FOR_S", 0.05)
    answering = agent.answer_link("127.0.0.1")
    port = next(answering)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(agent.measure_link, "127.0.0.1", port)
        assert list(answering) == []
        assert found.result().round_trip_us > 0
        assert found.result().rate_bits_per_s > 0


def test_where_nobody_answers_it_fails() -> None:
    answering = agent.answer_link("127.0.0.1")
    port = next(answering)
    answering.close()  # type: ignore[attr-defined]
    with pytest.raises(ConnectionRefusedError):
        agent.measure_link("127.0.0.1", port)
