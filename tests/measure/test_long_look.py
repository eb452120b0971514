"""What is kept of a long stretch of load."""

from builders import load_result
from webdyno.core.load_result import Window
from webdyno.measure.long_look import client_pauses


def test_a_stall_of_the_client_may_begin_with_the_counted_time() -> None:
    """Windows begin at sums of floats: the first counted one a digit before the ramp-up's end."""
    ramp_up_s = 0.3
    before_s = 0.1 + 0.2 - 2e-16
    assert before_s < ramp_up_s
    first = Window(at_s=before_s, length_s=0.1, completed=0, stalled=True)
    load = load_result().replace(ramp_up_s=ramp_up_s, windows=[first])
    (pause,) = client_pauses(load)
    assert (pause.at_s, pause.cause) == (0.0, "client")
