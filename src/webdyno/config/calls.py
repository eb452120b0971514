"""Calls of gRPC: the messages that values make of one, and whether its service has such."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from webdyno.config.columns import secret_columns
from webdyno.config.reading import PlaceOf
from webdyno.config.requests import read_rows
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.hiding import keep_secret
from webdyno.core.request import WrittenRequest
from webdyno.core.session import PLACE, Values, places
from webdyno.core.text import with_secrets
from webdyno.load.proto import Call, call_fault

MOST_MESSAGES = 10_000
"""Of more rows the first ones are sent."""
DRAWN = 1_000
"""Messages where values come from no list: random numbers, counters."""


def values_of_call(
    written: WrittenRequest, values: Mapping[str, Values], environment: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """Yield what fills a call's places, message by message; once nothing where it has none.

    Raise UserError where a secret isn't there.
    """
    names = places(written.texts)
    if not written.is_call or not values or not names:
        yield {}
        return
    secret = secret_columns((), [written], {})
    columns = [_column(name, values, environment, secret) for name in names]
    count = max(map(len, columns))
    for number in range(count):
        texts = (column[number % len(column)] for column in columns)
        yield dict(zip(names, texts, strict=True))


def filled_json(text: str, values: Mapping[str, str]) -> str:
    """Return JSON with values in their places."""
    return filled(text, {name: json.dumps(its)[1:-1] for name, its in values.items()})


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with values in their places.

    They are data of others: secrets are filled into the text before, and never again.
    """
    return PLACE.sub(lambda place: values.get(place[1], place[0]), text)


def _column(
    name: str,
    values: Mapping[str, Values],
    environment: Mapping[str, str],
    secret: Collection[str],
) -> Sequence[str]:
    """Return what fills a place, in turn; of secret columns it is hidden from here on."""
    source, _, column = name.partition(".")
    its, drawn = values[source], Random(name)
    if its.file is not None:
        rows, _ = read_rows(Path(its.file), f"values.{source}", its.sha256)
        if name in secret:
            keep_secret(row[column] for row in rows)
        return [row[column] for row in rows[:MOST_MESSAGES]]
    if its.rows is not None:
        return [with_secrets(row[column], environment) for row in its.rows[:MOST_MESSAGES]]
    if its.choose is not None:
        return its.choose
    if its.random is not None:
        return [str(drawn.randint(*its.random)) for _ in range(DRAWN)]
    if its.counter is not None:
        return [str(its.counter + number) for number in range(DRAWN)]
    return [f"{drawn.getrandbits(64):016x}" for _ in range(DRAWN)]


def check_calls(experiment: Experiment, environment: Mapping[str, str], place: PlaceOf) -> None:
    """Raise UserError where the `.proto` file has other services or messages than calls need."""
    descriptors = experiment.load.descriptors
    if descriptors is None:
        return
    numbered = [each for each in enumerate(experiment.requests) if each[1].is_call]
    calls = []
    for _, request in numbered:
        values = next(values_of_call(request, experiment.values, environment))
        message = request.call_json
        calls.append(Call(request.path, message and filled_json(message, values)))
    if fault := call_fault(descriptors, tuple(calls)):
        which, why = fault
        where = ("load", "proto_file") if which is None else ("requests", numbered[which][0])
        raise UserError(f"{place(where)}: {why}")
