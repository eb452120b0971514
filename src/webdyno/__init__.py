"""webdyno: a dynamometer for web stacks.

    import webdyno

    result = webdyno.compare("nginx", "apache-event", paths=["/hello.txt"])
    print(result.headline, result.ratio.estimate, result.ratio.low, result.ratio.high)

docs/reference/python.md has all of it. Nothing is loaded before it is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webdyno.lab.api import (
        capacity,
        compare,
        explain,
        gate,
        open_run,
        resume,
        run_experiment,
        try_advice,
        tune,
    )
    from webdyno.lab.capacity_result import CapacityResult
    from webdyno.lab.gate_result import GateResult, GateRun
    from webdyno.lab.result import Chart, Result, Rows
    from webdyno.model.base import Interval
    from webdyno.model.errors import OperationError, UserError
    from webdyno.model.gate import GateAnswer
    from webdyno.model.judgement import ValidityWarning, Verdict

__all__ = [
    "CapacityResult",
    "Chart",
    "GateAnswer",
    "GateResult",
    "GateRun",
    "Interval",
    "OperationError",
    "Result",
    "Rows",
    "UserError",
    "ValidityWarning",
    "Verdict",
    "capacity",
    "compare",
    "explain",
    "gate",
    "open_run",
    "resume",
    "run_experiment",
    "try_advice",
    "tune",
]

_MODULES: dict[str, tuple[str, ...]] = {
    "webdyno.lab.api": ("open_run",),
    "webdyno.lab.capacity_result": ("CapacityResult",),
    "webdyno.lab.gate_result": ("GateResult", "GateRun"),
    "webdyno.lab.result": ("Chart", "Result", "Rows"),
    "webdyno.model.gate": ("GateAnswer",),
    "webdyno.model.base": ("Interval",),
    "webdyno.model.judgement": ("ValidityWarning", "Verdict"),
    "webdyno.model.errors": ("UserError", "OperationError"),
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    from webdyno.model.command import python_calls
    from webdyno.model.registry import imported

    parts = {each: f"{module}:{each}" for module, names in _MODULES.items() for each in names}
    if part := (parts | python_calls()).get(name):
        value: object = imported(part)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'webdyno' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what there is, loaded or not."""
    return sorted({*globals(), *__all__})
