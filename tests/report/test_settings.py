"""Settings of a run in words."""

import pytest

from webdyno.model.experiment import Arm, Experiment, Load, SlowReaders
from webdyno.report.settings import arm_words, load_words


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (
            Load(),
            "closed loop, 64\u202fconnections, keep-alive always, timeout 5\u202fs",
        ),
        (
            Load(loop="open", rate_per_s=2_000, keepalive=1),
            (
                "open loop, 2,000 requests due per second, at random (Poisson), at most "
                "64\u202fconnections, keep-alive for 1\u202frequest, timeout 5\u202fs"
            ),
        ),
        (
            Load(think_s=0.5, idle_connections=9, zipf=0.8),
            (
                "closed loop, 64\u202fconnections, mean pause of 0.5\u202fs before the next "
                "request, keep-alive always, paths by Zipf's law with exponent 0.8, "
                "9\u202fidle connections, timeout 5\u202fs"
            ),
        ),
        (
            Load(slow_readers=SlowReaders(connections=2, bytes_per_s=2048)),
            (
                "closed loop, 64\u202fconnections, keep-alive always, "
                "2\u202fslow readers at 2.0\u202fKiB/s, timeout 5\u202fs"
            ),
        ),
    ],
)
def test_loads(load: Load, said: str) -> None:
    assert load_words(load) == said


def test_arms() -> None:
    arms = {
        "small": Arm(stack="nginx", knobs={"sendfile": False}, memory=64 * 2**20, cpus=1),
        "plain": Arm(stack="nginx"),
    }
    experiment = Experiment(title="", question="", site="static", arms=arms)
    assert arm_words(experiment) == [
        "small: sendfile = false, at most 64\u202fMiB of memory, on 1\u202fCPU"
    ]
