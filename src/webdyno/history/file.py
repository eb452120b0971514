"""A history's file: a gate that a job measured, a line each."""

from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from webdyno.config.reading import first_fault
from webdyno.core.errors import UserError
from webdyno.core.files import append_text, read_named, writing
from webdyno.core.limits import GateJudgement
from webdyno.history.gates import PastGate, commit_in, past_gate

MOST_BYTES = 16 * 2**20


def read_history(file: Path, place: str = "") -> list[PastGate]:
    """Give the gates of a file, the earliest first; raise UserError for what is no history.

    Messages begin with a place, such as a flag.
    """
    content = read_named(file, MOST_BYTES, place)
    gates = [
        _gate(line, f"{file}:{number}")
        for number, line in enumerate(content.splitlines(), 1)
        if line.strip()
    ]
    if not gates:
        raise UserError(f"{file}: holds no gate yet; webdyno gate --history {file} adds one")
    for number, gate in enumerate(gates[1:], 2):
        _demand_same_reference(gates[0], gate.reference, f"{file}, gate {number}")
    return sorted(gates, key=lambda gate: gate.measured_at)


def check_history(file: Path, reference: str, flag: str) -> None:
    """Raise UserError where a gate against this reference couldn't be added to a file."""
    if _has_gates(file):
        _demand_same_reference(read_history(file, flag)[0], reference, f"{flag} {file}")


def check_rate(file: Path, rate_rps: float | None, flag: str) -> None:
    """Raise UserError where the gates of a file were measured at another arrival rate."""
    if not _has_gates(file):
        return
    known_rps = read_history(file, flag)[0].rate_rps
    if known_rps != rate_rps:
        raise UserError(
            f"{flag} {file}: this gate is {_at_rate(rate_rps)}, and the history "
            f"{_at_rate(known_rps)}; keep a file for each rate"
        )


def _has_gates(file: Path) -> bool:
    return file.exists() and not (file.is_file() and file.stat().st_size == 0)


def _at_rate(rate_rps: float | None) -> str:
    return f"at {rate_rps:,g} requests/s" if rate_rps is not None else "at full speed"


def add_to_history(file: Path, gate: GateJudgement) -> bool:
    """Add a gate's ratios as a line; say whether it has any.

    Raise OperationError where the file can't be written.
    """
    past = past_gate(gate, datetime.now(UTC))
    if past is None:
        return False
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    append_text(file, past.model_dump_json() + "\n")
    return True


def _gate(line: bytes, place: str) -> PastGate:
    try:
        return PastGate.model_validate_json(line)
    except ValidationError as error:
        raise UserError(
            f"{place}: is no gate that webdyno added to a history: {first_fault(error)}"
        ) from None


def _demand_same_reference(first: PastGate, reference: str, place: str) -> None:
    if commit_in(reference) != commit_in(first.reference):
        raise UserError(
            f"{place}: was compared with {reference}, and the history with {first.reference}; "
            "keep a file for each baseline"
        )
