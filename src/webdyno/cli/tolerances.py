"""`--worse-than`: how much worse is tolerated, of all metrics of a gate or of one."""

from collections.abc import Sequence

from webdyno.model.gate import DEFAULT_TOLERANCES
from webdyno.model.metrics import METRICS
from webdyno.model.mistake import Mistake
from webdyno.model.quantities import SHARE

SHORT = {
    "cpu": "server_cpu_us",
    "rate": "rate_rps",
    "p50": "response_p50_us",
    "p99": "response_p99_us",
    "memory": "memory_mib",
}
OFF = "off"
WITHOUT_NAME = "server_cpu_us"
"""What a share without a metric is meant for; the others keep their relation to it."""


def tolerances(texts: Sequence[str]) -> dict[str, float]:
    """Read `5%` and `p99=20%`, `rate=off`; raise Mistake, naming the flag, for anything else."""
    found: dict[str, float] = dict(DEFAULT_TOLERANCES)
    seen: set[str] = set()
    for text in sorted(texts, key=lambda it: "=" in it):  # a single metric's own counts before all
        name, equals, amount = text.rpartition("=")
        flag = f"--worse-than {text}"
        metric = _metric(name, flag) if equals else ""
        if metric in seen:
            raise Mistake(f"{flag}: was said twice; say it once")
        seen.add(metric)
        if equals and amount.strip().lower() == OFF:
            found.pop(metric, None)
        elif equals:
            found[metric] = _share(amount, flag)
        else:
            scale = _share(amount, flag) / DEFAULT_TOLERANCES[WITHOUT_NAME]
            found = {key: share * scale for key, share in DEFAULT_TOLERANCES.items()}
    if not found:
        raise Mistake("--worse-than: all metrics are off, so there is nothing to ask")
    return found


def _metric(name: str, flag: str) -> str:
    metric = SHORT.get(name.strip(), name.strip())
    if metric not in METRICS or not METRICS[metric].decides:
        able = ", ".join([*SHORT, *(it for it, rule in METRICS.items() if rule.decides)])
        raise Mistake(f"{flag}: there is no metric {name!r} to ask about; there are {able}")
    return metric


def _share(amount: str, flag: str) -> float:
    share = SHARE.read(amount)
    if share is None or not 0.001 <= share <= 2:
        raise Mistake(f"{flag}: should be a share from 0.1% to 200%, such as 5% or p99=20%")
    return share
