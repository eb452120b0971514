"""The round trip to a machine elsewhere: each latency that is measured there has it in it."""

import time
from statistics import median

from webdyno.stack.ready import Address, connect

TIMES = 11


def measured_round_trip_s(address: Address) -> float:
    """Give how long connecting takes, the median of some: one round trip of the network.

    Raise OSError where nobody listens.
    """
    took_s = list[float]()
    for _ in range(TIMES):
        began = time.perf_counter()
        connect(address).close()
        took_s.append(time.perf_counter() - began)
    return median(took_s)
