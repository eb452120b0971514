"""What was set for a run, in words: the load, each arm."""

from collections.abc import Iterator

from webdyno.model.experiment import Arm, Experiment, Load
from webdyno.model.quantities import memory_words
from webdyno.report import text


def load_words(load: Load) -> str:
    """Tell what the clients do."""
    return ", ".join(_load_parts(load))


def _load_parts(load: Load) -> Iterator[str]:
    yield f"{load.loop} loop"
    if load.rate_per_s is not None:
        arrivals = "at random (Poisson)" if load.arrivals == "poisson" else "evenly spaced"
        yield f"{load.rate_per_s:,g} {load.due}s due per second, {arrivals}"
    at_most = "at most " if load.loop == "open" else ""
    yield at_most + text.count(load.connections, "connection")
    if load.think_s:
        yield f"mean pause of {text.duration(load.think_s)} before the next request"
    if isinstance(load.keepalive, str):
        yield f"keep-alive {load.keepalive}"
    else:
        yield f"keep-alive for {text.count(load.keepalive, 'request')}"
    if load.zipf is not None:
        yield f"paths by Zipf's law with exponent {load.zipf:g}"
    if load.idle_connections:
        yield text.count(load.idle_connections, "idle connection")
    if load.slow_readers is not None:
        slow = text.count(load.slow_readers.connections, "slow reader")
        yield f"{slow} at {text.size(load.slow_readers.bytes_per_s)}/s"
    yield f"timeout {text.duration(load.timeout_s)}"


def arm_words(experiment: Experiment) -> list[str]:
    """Tell what was set for arms beside their stack; arms without settings are left out."""
    told = {name: ", ".join(_arm_parts(arm)) for name, arm in experiment.arms.items()}
    return [f"{name}: {settings}" for name, settings in told.items() if settings]


def _arm_parts(arm: Arm) -> Iterator[str]:
    yield from (f"{name} = {text.level(value)}" for name, value in arm.knobs.items())
    if arm.memory is not None:
        yield f"at most {memory_words(arm.memory)} of memory"
    if arm.cpus is not None:
        yield f"on {text.count(arm.cpus, 'CPU')}"
