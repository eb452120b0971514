"""Each configuration is taken by its server, or refused with a remedy that works when followed."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import pytest

from systems.conf.strangers import Case, of_nginx
from systems.conf.strangers_elsewhere import of_others
from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.core.service import Need
from webdyno.servers.needs import find
from webdyno.servers.service_graph import certificate
from webdyno.systems.conf import configuration
from webdyno.systems.target import GeneratedService, OwnKeys, TargetSpec

CATALOGUE = Catalogue.load([])
CONFIGURATIONS = ("nginx.conf", "httpd.conf", "lighttpd.conf", "caddy.json", "haproxy.cfg")
"""What moved ones are called."""
OF_LOAD = ("protocol", "host")
CASES = {
    f"{server}: {case.name}": case
    for server, cases in (of_nginx() | of_others()).items()
    for case in cases
}


def moved(
    folder: Path, case: Case, keys: Mapping[str, Any], reported: list[str]
) -> GeneratedService:
    name = next(iter(case.files))
    port = f"#{keys['port']}" if "port" in keys else ""
    own = {key: it for key, it in keys.items() if key not in {*OF_LOAD, "port"}}
    return configuration.make(
        TargetSpec(
            written=f"conf:{name}",
            text=f"{name}{port}",
            keys=OwnKeys(**own),
            folder=folder,
            place="here",
            notify=reported.append,
            services=CATALOGUE.services,
            testbed=None,
            provide=lambda _: None,
            **{key: keys[key] for key in OF_LOAD if key in keys},
        )
    )


def filled_in(folder: Path, it: GeneratedService) -> tuple[str, str]:
    """Fill a configuration in; give it, and what its server says against it."""
    run = folder / "@run"
    for name in it.service.get("folders", []):
        (run / name).mkdir(parents=True, exist_ok=True)
    run.mkdir(exist_ok=True)
    pair = certificate("127.0.0.1", "ec")
    for name, content in (
        ("certificate", pair.certificate),
        ("key", pair.key),
        ("key-and-certificate", pair.certificate + pair.key),
    ):
        (run / f"{name}.pem").write_text(content)
    needs = {key: find(Need(**need)) for key, need in it.service["needs"].items()}
    server = {"folder": str(run), "host": "127.0.0.1", "port": 18_099}
    server |= {file.stem.replace("-", "_"): str(file) for file in run.glob("*.pem")}
    behind = {role: {"host": "127.0.0.1", "port": 9} for role in it.backends}
    jinja = jinja2.Environment(
        autoescape=False,  # noqa: S701 (configurations, no web pages)
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )

    def filled(text: str) -> str:
        return jinja.from_string(text).render(server=server, needs=needs, services=behind)

    for name, template in it.files.items():
        (run / name).write_text(filled(template))
    done = subprocess.run(
        [filled(word) for word in it.service["check"]],
        env={key: filled(value) for key, value in it.service["environment"].items()},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    (name,) = it.files.keys() & set(CONFIGURATIONS)
    text = (run / name).read_text().replace(str(run), "@run")
    return text, done.stderr + done.stdout if done.returncode else ""


def followed(said: str, case: Case) -> dict[str, Any]:
    """Give the keys that a message's flags stand for, with the values of the case."""
    tables = {key: dict(case.keys.get(key, {})) for key in ("environment", "backends")}
    for name in re.findall(r"--env (\w+)=VALUE", said):
        tables["environment"][name] = case.values.get(name, "8080")
    for host in re.findall(r"--backend (\S+)=cmd:'COMMAND'", said):
        tables["backends"][host] = "cmd:x"
    keys = {**case.keys, **tables}
    if found := re.search(r"--set load\.protocol=(\w+)", said):
        keys["protocol"] = found[1]
    return {**keys, **({"port": case.values["port"]} if "port" in case.values else {})}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_strangers_configuration(open_folder: Path, case: Case) -> None:
    folder, reported, keys = open_folder, list[str](), dict(case.keys)
    for name, text in case.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    if case.refused:
        with pytest.raises(UserError) as error:
            moved(folder, case, keys, reported)
        said = str(error.value)
        assert re.search(case.refused, said, re.DOTALL), said
        keys = followed(said, case)
        for name, text in case.instead.items():
            (folder / name).write_text(text)
        reported.clear()
        if case.ends_there:
            return
    it = moved(folder, case, keys, reported)
    text, against = filled_in(folder, it)
    assert bool(against) == case.ends_there, against
    for each in case.there:
        assert each in text or each in "\n".join(reported), f"{text}\n{reported}"
