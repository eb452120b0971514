"""The example for Ray's own launcher is a file that it takes, with what webdyno asks of a node."""

from pathlib import Path

import pytest

from webdyno.cluster.node import environment

yaml = pytest.importorskip("yaml")
util = pytest.importorskip("ray.autoscaler._private.util")
FILE = Path(__file__).parent.parent.parent / "examples/cluster.yaml"


def test_ray_takes_it() -> None:
    config = util.prepare_config(yaml.safe_load(FILE.read_text()))
    util.validate_config(config)
    assert config["provider"]["worker_ips"] == ["10.0.0.2", "10.0.0.3"]


@pytest.mark.parametrize("role", ["head", "worker"])
def test_its_nodes_have_the_settings_of_webdynos_own(role: str) -> None:
    command = yaml.safe_load(FILE.read_text())[f"{role}_start_ray_commands"][-1]
    settings = {k: v for k, v in environment("t").items() if k != "RAY_AUTH_TOKEN"}
    for name, value in settings.items():
        assert f"{name}={value}" in command
