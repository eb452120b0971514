"""Broadcasts: what they go with."""

import pytest

from webdyno.core.load import Load, check_requests
from webdyno.core.request import WrittenRequest

MESSAGE = WrittenRequest(path="/chat", message="hello")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"idle_connections": 1}, "idle_connections"),
        ({"keepalive": 4}, "keepalive"),
        ({"count": 65}, "a multiple of 64"),
        ({"loop": "open", "rate_per_s": 9, "burst": 2}, "burst"),
        ({"loop": "open", "rate_per_s": 9, "send_delay_budget_s": 0.001}, "send_delay_budget_s"),
    ],
)
def test_what_does_not_go_with_it_is_refused(more: dict[str, object], says: str) -> None:
    assert Load.model_validate(more | {"broadcast": False})
    with pytest.raises(ValueError, match=says):
        Load.model_validate(more | {"broadcast": True})


def test_it_sends_one_message() -> None:
    load = Load(broadcast=True, count=128)
    check_requests([MESSAGE], load, None, own_paths=[])
    with pytest.raises(ValueError, match="one message to all"):
        check_requests([MESSAGE, MESSAGE], load, None, own_paths=[])
    with pytest.raises(ValueError, match="a message of a WebSocket"):
        check_requests([WrittenRequest(path="/")], load, None, own_paths=[])
