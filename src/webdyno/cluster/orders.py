"""Orders to an agent on another host, as values, and what comes of them.

What can be ordered is what `RemoteAgent` has, and nothing else: who gives orders calls its methods,
and who carries them out has them.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from webdyno.cluster.host import RemoteAgent
from webdyno.model.mistake import Mistake, Trouble


class Order(NamedTuple):
    """A call of a method."""

    what: str
    values: tuple[object, ...]
    named: Mapping[str, object]


class Reply(NamedTuple):
    """What came of an order: a value, or what to raise where it was given."""

    value: object = None
    refusal: Mistake | Trouble | None = None


ORDERS = frozenset(
    name for kind in RemoteAgent.__mro__ for name in vars(kind) if not name.startswith("_")
)


def remote_agent(give: Callable[[Order], object]) -> RemoteAgent:
    """Give an agent whose methods `give` orders, and return or raise what comes of them."""

    def method(what: str) -> Callable[..., object]:
        return lambda *values, **named: give(Order(what, values, named))

    return cast("RemoteAgent", SimpleNamespace(**{what: method(what) for what in ORDERS}))


def carried_out(order: Order, agent: RemoteAgent) -> Reply:
    """Carry out an order here."""
    if order.what not in ORDERS:
        return Reply(refusal=Mistake(f"there is no order {order.what!r}"))
    method: Callable[..., Any] = getattr(agent, order.what)
    try:
        return Reply(method(*order.values, **order.named))
    except (Mistake, Trouble) as refusal:
        return Reply(refusal=refusal)
