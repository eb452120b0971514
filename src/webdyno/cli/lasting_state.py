"""Whether requests change what the next block finds."""

from webdyno.definitions import Catalogue
from webdyno.model.experiment import Experiment

READING = {"GET", "HEAD", "OPTIONS", "TRACE"}
"""Methods that RFC 9110 (9.2.1) calls safe."""


def state_that_stays(experiment: Experiment, catalogue: Catalogue) -> str | None:
    """Say that what requests write is there in the next block; None where nothing is known to be.

    Containers begin afresh in each block, and `prepare` is taken to put things back.
    """
    writing = [it.label for it in experiment.requests if it.method not in READING]
    if not writing or experiment.state.before_block:
        return None
    lasting = [name for name, arm in experiment.arms.items() if _keeps_state(catalogue, arm.stack)]
    if not lasting:
        return None
    return (
        f"{writing[0]} may write, and nothing puts that back: later blocks find more than earlier "
        f"ones, and arms in one folder ({', '.join(lasting)}) write into the same files. "
        '[state] before_block = ["…"] or prepare in [app] resets it (docs/own.md)'
    )


def _keeps_state(catalogue: Catalogue, name: str) -> bool:
    stack = catalogue.stack(name)
    front = stack.services[stack.front].service
    return bool(front.own and front.own.container_port is None and not front.initialise)
