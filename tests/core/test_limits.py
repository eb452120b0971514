"""What `--fail-if` says of a run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import SimulatedVariant, run_head, simulated_run
from webdyno.comparison import judge
from webdyno.core.limits import Holds, limit_answers, read_limits

EXPERIMENT = run_head({"a": "nginx", "b.c": "nginx"}).experiment


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("b.c.server_cpu_us > +5%", "yes"),
        ("b.c.server_cpu_us>+20%", "inconclusive"),
        ("b.c.cpu > +60%", "no"),
        ("b.c.server_cpu_us < -5%", "no"),
        ("b.c.throughput_rps < +20%", "yes"),
        ("memory > +5%", "inconclusive"),
    ],
)
def test_a_limit_holds_where_the_whole_interval_is_beyond_it(text: str, holds: Holds) -> None:
    variants = {"a": SimulatedVariant(), "b.c": SimulatedVariant(server_cpu_us=24.0)}
    run = simulated_run(variants, rounds=8)
    (response,) = limit_answers(read_limits(text, run.head.experiment), [judge(run.data)])
    assert response.holds == holds
    if "memory" not in text:
        assert response.ratio.startswith("b.c to a: ")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("slower", "should look like"),
        ("b.c.server_cpu_us > 5", "should look like"),
        ("p99 > 5%", "should look like"),
        ("a.throughput_rps > +5%", "is the baseline"),
        ("d.throughput_rps > +5%", "there is no variant 'd'; there are b.c"),
        ("b.c.speed > +5%", "there is no metric 'speed'"),
        ("b.c.throughput_rps < -100%", "nothing is less"),
    ],
)
def test_what_is_no_limit_is_refused_with_the_reason(text: str, reported: str) -> None:
    with pytest.raises(ValueError, match=reported):
        read_limits(text, EXPERIMENT)


@given(st.sampled_from("<>"), st.floats(-99, 1e6), st.sampled_from(["", " "]))
def test_any_share_is_read_as_it_is_written(sign: str, percent: float, space: str) -> None:
    (limit,) = read_limits(
        f"b.c.throughput_rps{space}{sign}{space}{percent:+.3f}{space}%", EXPERIMENT
    )
    assert (limit.variant, limit.metric, limit.above) == ("b.c", "throughput_rps", sign == ">")
    assert limit.share == pytest.approx(percent / 100, abs=1e-5)
