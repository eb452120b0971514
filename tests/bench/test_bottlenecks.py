"""The table of planted bottlenecks: what counts as named."""

from datetime import UTC, datetime

import pytest

import bottlenecks
import causes
from webdyno.config import Catalogue
from webdyno.core.base import Interval
from webdyno.core.findings import Elasticity, Resource


def limited(case: str, **found: tuple[float, float]) -> bottlenecks.Limited:
    resources: dict[str, Resource] = {
        "servers": "servers' CPU",
        "client": "client's CPU",
        "workers": "workers",
        "link": "link",
        "connections": "connections",
    }
    return bottlenecks.Limited(
        case=case,
        at=datetime.now(UTC),
        machine="m",
        commit="c",
        took_s=1.0,
        found=[
            Elasticity(
                variant="limited",
                resource=resources[name],
                share=0.8,
                found=Interval(low=low, estimate=(low + high) / 2, high=high),
            )
            for name, (low, high) in found.items()
        ],
    )


def test_what_limits_has_to_come_first_and_be_sure() -> None:
    assert limited("one worker", workers=(0.9, 1.1), servers=(-0.1, 0.2)).is_right
    assert not limited("one worker", workers=(0.5, 1.1), servers=(-0.1, 0.2)).is_right
    assert not limited("one worker", workers=(0.7, 1.1), servers=(0.9, 1.2)).is_right


def test_in_a_balanced_system_both_limit_in_part() -> None:
    assert limited("two in turns", workers=(0.3, 0.5), connections=(0.4, 0.6)).is_right
    assert not limited("two in turns", workers=(-0.1, 0.5), connections=(0.4, 0.6)).is_right
    assert not limited("two in turns", workers=(0.7, 0.9), connections=(0.1, 0.3)).is_right


def test_a_slow_backend_is_reported_by_the_connections() -> None:
    assert limited("a slow backend", connections=(0.9, 1.1), servers=(-0.1, 0.1)).is_right
    assert not limited("a slow backend", connections=(0.1, 0.3), servers=(0.7, 1.1)).is_right


@pytest.mark.parametrize("case", bottlenecks.CASES)
def test_each_case_is_an_experiment(case: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("case") / "case.toml"
    file.write_text(bottlenecks.written(case, bottlenecks.CASES[case]))
    read = Catalogue.load([causes.CATALOGUE]).experiment(str(file))
    assert list(read.variants) == [bottlenecks.VARIANT, "the same"]
