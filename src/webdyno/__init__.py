"""webdyno: a dynamometer for web stacks.

    import webdyno

    result = webdyno.compare("nginx", "apache-event", paths=["/hello.txt"])
    print(result.headline, result.ratio.estimate, result.ratio.low, result.ratio.high)

docs/reference/python.md has all of it. Nothing is loaded before it is used.
"""

from importlib import import_module
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

_MODULES = {
    "webdyno.lab.api": (
        "capacity",
        "compare",
        "explain",
        "gate",
        "open_run",
        "resume",
        "run_experiment",
        "try_advice",
        "tune",
    ),
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
    for module, names in _MODULES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(module), name)
            return value
    raise AttributeError(f"module 'webdyno' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what there is, loaded or not."""
    return sorted({*globals(), *__all__})
