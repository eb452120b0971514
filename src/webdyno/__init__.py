"""webdyno: a dynamometer for web stacks.

    import webdyno

    result = webdyno.compare("nginx", "apache-event", paths=["/hello.txt"])
    print(result.headline, result.ratio.estimate, result.ratio.low, result.ratio.high)

docs/reference/python.md has all of it. Nothing is loaded before it is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webdyno.core.base import Interval
    from webdyno.core.errors import OperationError, UserError
    from webdyno.core.judgement import ValidityWarning, Verdict
    from webdyno.core.limits import GateAnswer
    from webdyno.interfaces.python.api import open_run, resume, run_experiment
    from webdyno.interfaces.python.result import (
        CapacityResult,
        Chart,
        GateResult,
        GateRun,
        Result,
        Rows,
    )
    from webdyno.questions.capacity.call import capacity
    from webdyno.questions.compare.call import compare
    from webdyno.questions.explain.call import explain, try_advice
    from webdyno.questions.gate.call import gate
    from webdyno.questions.tune.call import tune

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
    "webdyno.interfaces.python.api": ("open_run",),
    "webdyno.interfaces.python.result": (
        *("CapacityResult", "Chart", "GateResult", "GateRun", "Result", "Rows"),
    ),
    "webdyno.core.limits": ("GateAnswer",),
    "webdyno.core.base": ("Interval",),
    "webdyno.core.judgement": ("ValidityWarning", "Verdict"),
    "webdyno.core.errors": ("UserError", "OperationError"),
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    from webdyno.core.registry import import_part, python_calls

    parts = {each: f"{module}:{each}" for module, names in _MODULES.items() for each in names}
    if part := (parts | python_calls()).get(name):
        value: object = import_part(part)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'webdyno' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what there is, loaded or not."""
    return sorted({*globals(), *__all__})
