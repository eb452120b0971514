"""docs/requests.md: its examples hold."""

import re
import shlex
import tomllib
from pathlib import Path

from webdyno.definitions import Catalogue, CommandLine, read_experiment
from webdyno.definitions.traffic import read_curl
from webdyno.model.request import Request

TEXT = (Path(__file__).parents[3] / "docs/requests.md").read_text(encoding="utf-8")


def test_the_experiment_is_one() -> None:
    for text in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL):
        data = tomllib.loads(text)
        experiment = read_experiment(CommandLine(data, {}), [], Catalogue.load())
        assert [it.label for it in experiment.requests] == ["/hello.txt", "download"]


def test_the_curl_command_is_understood() -> None:
    (line,) = (
        line for line in TEXT.splitlines() if line.startswith("webdyno") and "--curl" in line
    )
    command = shlex.split(line)[-1]
    assert Request.model_validate(read_curl(command)).path == "/hello.txt"
