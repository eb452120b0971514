"""What each client says that it did: valid responses and failures, read from its output."""

import json
import re
from dataclasses import dataclass

from rig.process import BenchError


@dataclass(frozen=True)
class Counts:
    """A client's own account."""

    completed: int
    """Responses that the client takes for valid."""
    failed: int
    """Everything else that it noticed, of any kind."""


def _number(pattern: str, output: str) -> int | None:
    found = re.search(pattern, output, re.MULTILINE)
    return int(found.group(1)) if found else None


def _needed(pattern: str, output: str) -> int:
    number = _number(pattern, output)
    if number is None:
        raise BenchError(f"a client's output has no {pattern!r}; it ends: {output[-300:]!r}")
    return number


def _json(output: str) -> dict[str, object]:
    try:
        found = json.loads(output)
    except json.JSONDecodeError as error:
        raise BenchError(f"a client's output is no JSON: {error}; {output[:300]!r}") from None
    if not isinstance(found, dict):
        raise BenchError(f"a client's output is no JSON object: {output[:300]!r}")
    return found


def _part(whole: dict[str, object], name: str) -> dict[str, object]:
    part = whole.get(name)
    if not isinstance(part, dict):
        raise BenchError(f"a client's JSON has no object named {name!r}")
    return part


def _integers(counted: dict[str, object]) -> list[int]:
    return [number for number in counted.values() if isinstance(number, int)]


def loadgen(output: str) -> Counts:
    """Read `loadgen run --json`."""
    result = _json(output)
    completed = _part(result, "requests").get("completed")
    if not isinstance(completed, int):
        raise BenchError("loadgen's JSON has no number named requests.completed")
    return Counts(completed, sum(_integers(_part(result, "failures"))))


def floor(output: str) -> Counts:
    """Read the bare loop's line; it stops at the first failure."""
    completed = _json(output).get("completed")
    if not isinstance(completed, int):
        raise BenchError("floor's JSON has no number named completed")
    return Counts(completed, 0)


def wrk(output: str) -> Counts:
    """Read wrk and wrk2; both count wrong statuses among the requests, too."""
    errors = re.search(
        r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output
    )
    socket_errors = sum(map(int, errors.groups())) if errors else 0
    wrong_status = _number(r"Non-2xx or 3xx responses: (\d+)", output) or 0
    requests = _needed(r"^\s*(\d+) requests in ", output)
    return Counts(requests - wrong_status, socket_errors + wrong_status)


def ab(output: str) -> Counts:
    """Read ab; its failed requests are among the complete ones."""
    complete = _needed(r"^Complete requests:\s+(\d+)", output)
    failed = _needed(r"^Failed requests:\s+(\d+)", output)
    wrong_status = _number(r"^Non-2xx responses:\s+(\d+)", output) or 0
    return Counts(complete - max(failed, wrong_status), failed + wrong_status)


def h2load(output: str) -> Counts:
    """Read h2load; a request can be failed and errored at once."""
    succeeded = _needed(r"\b(\d+) succeeded", output)
    failed = _needed(r"\b(\d+) failed", output)
    return Counts(succeeded, failed + _needed(r"\b(\d+) timeout", output))


def hey(output: str) -> Counts:
    """Read hey's summary."""
    by_status = re.findall(r"^\s+\[(\d{3})\]\s+(\d+) responses", output, re.MULTILINE)
    right = sum(int(number) for status, number in by_status if status.startswith("2"))
    wrong = sum(int(number) for status, number in by_status if not status.startswith("2"))
    _, _, errors = output.partition("Error distribution:")
    wrong += sum(map(int, re.findall(r"^\s+\[(\d+)\]\s", errors, re.MULTILINE)))
    return Counts(right, wrong)


def ghz(output: str) -> Counts:
    """Read ghz's JSON."""
    by_status = _part(_json(output), "statusCodeDistribution")
    right = by_status.get("OK", 0)
    if not isinstance(right, int):
        raise BenchError("ghz's JSON has no number named statusCodeDistribution.OK")
    return Counts(right, sum(_integers(by_status)) - right)


CUT_OFF = "aborted due to deadline"
"""What oha calls the requests in flight when the time is up; no failures."""


def oha(output: str) -> Counts:
    """Read oha's JSON."""
    result = _json(output)
    by_status = _part(result, "statusCodeDistribution")
    right = {status: number for status, number in by_status.items() if status.startswith("2")}
    errors = _part(result, "errorDistribution")
    failures = {kind: number for kind, number in errors.items() if kind != CUT_OFF}
    wrong = sum(_integers(by_status)) - sum(_integers(right))
    return Counts(sum(_integers(right)), wrong + sum(_integers(failures)))
