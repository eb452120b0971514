"""What the pilot of an arm found: the settings with which its steady state is measured."""

from webdyno.model.base import Model


class Pilot(Model):
    """Times that an arm needs, found from that arm alone."""

    warmup_s: float
    """Load after a fresh start until rate and CPU time per request are steady."""
    lead_in_s: float
    """Load at the beginning of each slot that doesn't count."""
    window_s: float
    """The part of a slot that counts."""
    period_s: float | None
    """Period of a cycle of the rate; None where none was found."""
    steady: bool
    """False when it wasn't steady yet where the pilot ended, or a cap cut warm-up or lead-in."""
    why: str
    """What the times rest on, in a sentence or two."""
