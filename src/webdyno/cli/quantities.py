"""Quantities that stand alone on the command line, outside an experiment."""

from pydantic import TypeAdapter

from webdyno.definitions.validation import read_value, written_value
from webdyno.model.load import Connections
from webdyno.model.quantities import Budget, Size

_BUDGET: TypeAdapter[float] = TypeAdapter(Budget)
_SIZE: TypeAdapter[int] = TypeAdapter(Size)
_CONNECTIONS: TypeAdapter[int] = TypeAdapter(Connections)


def parse_duration_s(text: str, flag: str) -> float:
    """Read `90s`, `1.5m`, `2h` or a bare number of seconds; raise Mistake naming the flag."""
    return read_value(_BUDGET, text, flag)


def parse_size(text: str, flag: str) -> int:
    """Read `512MB`, `1GiB` or a bare number of bytes; raise Mistake naming the flag."""
    return read_value(_SIZE, text, flag)


def parse_connections(text: str, flag: str) -> int:
    """Read how many connections; raise Mistake naming the flag."""
    return read_value(_CONNECTIONS, written_value(text, f"{flag} {text}"), flag)
