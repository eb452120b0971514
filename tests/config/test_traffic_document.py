"""docs/how-to/traffic.md: its examples hold."""

import re
import shlex
import tomllib
from pathlib import Path

from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.config.traffic import read_curl
from webdyno.core.request import WrittenRequest

TEXT = (Path(__file__).parents[2] / "docs/how-to/traffic.md").read_text(encoding="utf-8")


def test_the_experiment_is_one() -> None:
    first, *parts = map(tomllib.loads, re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL))
    experiment = read_experiment(CommandLine(first, {}), [], Catalogue.load())
    assert [it.label for it in experiment.requests] == ["/hello.txt", "download"]
    for part in parts:  # what is to be put into one
        assert read_experiment(CommandLine({**first, **part}, {}), [], Catalogue.load()).requests


def test_the_curl_command_is_understood() -> None:
    (line,) = (
        line
        for line in TEXT.splitlines()
        if line.startswith("webdyno") and '--traffic "curl' in line
    )
    command = shlex.split(line)[-1]
    assert WrittenRequest.model_validate(read_curl(command)).path == "/hello.txt"
