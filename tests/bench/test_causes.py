"""The table of planted causes: what counts as named."""

from datetime import UTC, datetime

import pytest
from rich.console import Console

import causes
from webdyno.config import Catalogue
from webdyno.core.base import Interval
from webdyno.core.findings import Advice, Gain


def named(case: str, *gains: tuple[str, float, bool]) -> causes.Named:
    return causes.Named(
        case=case,
        at=datetime.now(UTC),
        machine="m",
        commit="c",
        took_s=1.0,
        gains=[
            Gain(
                variant="slow",
                advice=Advice(setting=setting, now=True, tried=False, says="waits", vendor="v"),
                is_sure=sure,
                ratio=Interval(low=ratio, estimate=ratio, high=ratio),
            )
            for setting, ratio, sure in gains
        ],
    )


def test_the_largest_sure_gain_has_to_be_what_was_planted() -> None:
    assert named("htaccess", ("access_log", 1.05, True), ("allow_override", 1.2, True)).is_right
    assert not named("htaccess", ("access_log", 1.3, True), ("allow_override", 1.2, True)).is_right
    assert not named("htaccess", ("allow_override", 1.2, False)).is_right
    assert named("nothing (nginx)", ("sendfile", 1.2, False)).is_right
    assert not named("nothing (nginx)", ("sendfile", 1.2, True)).is_right


@pytest.mark.parametrize("case", causes.CASES)
def test_each_case_is_an_experiment(case: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("case") / "case.toml"
    file.write_text(causes.written(case, causes.CASES[case]))
    read = Catalogue.load([causes.CATALOGUE]).experiment(str(file))
    assert list(read.variants) == [causes.GOOD, causes.SLOW]


def test_the_table_counts_the_last_run_of_each_case() -> None:
    wrong, right = named("htaccess"), named("htaccess", ("allow_override", 1.2, True))
    console = Console(width=120, record=True)
    console.print(causes.table([wrong, right, named("nothing (nginx)")]))
    assert "2 of 2 causes named" in console.export_text()
