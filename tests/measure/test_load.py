"""A load in an experiment: what fits together and what doesn't."""

import pytest
from pydantic import ValidationError

from webdyno.core.load import Load


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({"loop": "open"}, "rate_per_s"),
        ({"rate_per_s": 10}, 'loop = "open"'),
        ({"loop": "open", "rate_per_s": 10, "think_s": 1}, "think_s"),
        ({"loop": "open", "rate_per_s": 10, "arrival_unit": "connection"}, "keepalive = N"),
        ({"connections": 0}, "greater than or equal to 1"),
    ],
)
def test_what_does_not_fit_together_is_refused(settings: dict[str, object], reported: str) -> None:
    with pytest.raises(ValidationError, match=reported):
        Load.model_validate(settings)


def test_the_offered_rate_counts_requests() -> None:
    by_connection = {
        "loop": "open",
        "rate_per_s": 20,
        "arrival_unit": "connection",
        "keepalive": 10,
    }
    assert Load.model_validate(by_connection).offered_rps == 200
    assert Load(loop="open", rate_per_s=20).offered_rps == 20
    assert Load().offered_rps is None


def test_paths_get_equal_shares_unless_asked_for_by_zipfs_law() -> None:
    assert Load().shares(4) == [0.25] * 4
    assert Load(zipf=1.0).shares(3) == pytest.approx([6 / 11, 3 / 11, 2 / 11])
