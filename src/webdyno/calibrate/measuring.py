"""A whole calibration, step by step."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib.metadata import version

from webdyno.calibrate.ceilings import measure_ceiling, measure_send_lag, measure_timer_lag
from webdyno.calibrate.noise import measure_noise
from webdyno.generator import find_loadgen, loadgen_version
from webdyno.host import open_bench
from webdyno.model.bench import BenchSettings
from webdyno.model.calibration import Calibration


def measure_calibration(
    bodies: Sequence[int],
    connections: Sequence[int],
    settings: BenchSettings,
    budget_s: float,
    tell: Callable[[str], None],
) -> Calibration:
    """Measure ceilings for each length of body and number of connections, then lags and noise.

    What the ceilings leave of the budget is for the noise. `tell` hears what is being done.
    """
    began = time.monotonic()
    made_at = datetime.now().astimezone()
    with open_bench(settings, find_loadgen()) as bench:
        ceilings = []
        for count in connections:
            for body_bytes in bodies:
                tell(f"answers of {body_bytes:,} bytes over {count} connections")
                ceilings.append(measure_ceiling(bench, body_bytes, count, "always"))
            tell(f"new connections, {count} at a time")
            ceilings.append(measure_ceiling(bench, min(bodies), count, "never"))
        tell("how late timers and requests are")
        timer_lag = measure_timer_lag(bench)
        send_lag = measure_send_lag(bench, max(connections))
        left_s = budget_s - (time.monotonic() - began)
        noise = measure_noise(bench, max(connections), left_s, tell)
        return Calibration(
            made_at=made_at,
            webdyno_version=version("webdyno"),
            load_generator=loadgen_version(),
            machine=bench.describe(),
            bench=settings,
            ceilings=ceilings,
            timer_lag=timer_lag,
            send_lag=send_lag,
            noise=noise,
        )
