"""What becomes of `conf:FILE` as a whole: which port is measured, what is said and kept."""

from pathlib import Path

import pytest

from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.core.service import ORIGINS, Origins
from webdyno.systems.conf import configuration
from webdyno.systems.target import GeneratedService, OwnKeys, TargetSpec

TEXT = "server { listen 80; root /a; }\nserver {\n  listen 8080;\n  root /b;\n}\n"


def make(folder: Path, text: str, says: list[str]) -> GeneratedService:
    return configuration.make(
        TargetSpec(
            written=f"conf:{text}",
            text=text,
            keys=OwnKeys(),
            folder=folder,
            place="stack",
            notify=says.append,
            services=Catalogue.load([]).services,
            testbed=None,
            provide=lambda _: None,
            host="shop.example:81",
        )
    )


def test_a_port_of_its_own_is_chosen_and_said_first(open_folder: Path) -> None:
    (open_folder / "site.conf").write_text(TEXT)
    says: list[str] = []
    made = make(open_folder, "nginx:site.conf#8080", says)
    assert says[1].startswith("  measured is port 8080, of 80 and 8080; conf:site.conf#PORT")
    text = made.files["nginx.conf"]
    assert "root /b;" in text
    assert "root /a;" not in text
    assert made.service["own"]["host"] == "shop.example:81"
    assert ORIGINS not in made.service["files"]
    origins = Origins.model_validate_json(made.files[ORIGINS])
    line = next(at for at, it in enumerate(text.split("\n"), 1) if "root /b;" in it)
    assert str(origins.at(line)) == f"{open_folder}/site.conf:4"


@pytest.mark.parametrize("port", ["0", "65536", "9" * 5000])
def test_what_is_no_port_is_refused(tmp_path: Path, port: str) -> None:
    (tmp_path / "site.conf").write_text(TEXT)
    with pytest.raises(UserError, match="is no port, which is a number up to 65535"):
        make(tmp_path, f"nginx:site.conf#{port}", [])


def test_a_name_may_have_the_mark_of_a_port(open_folder: Path) -> None:
    (open_folder / "site#a.conf").write_text(TEXT)
    assert "root /a;" in make(open_folder, "nginx:site#a.conf", []).files["nginx.conf"]


def test_no_directive_begins_in_a_comment(open_folder: Path) -> None:
    """What was changed is said above the configuration; a line break there is the author's."""
    break_in = 'access_log "/x\ninclude /etc/shadow;\n#";'
    (open_folder / "site.conf").write_text(f"server {{ listen 80; {break_in} root /a; }}\n")
    name = "other\ninclude passwd;\n#.conf"
    (open_folder / name).write_text(TEXT)
    for text in ("nginx:site.conf", f"nginx:{name}#80"):
        moved = make(open_folder, text, []).files["nginx.conf"]
        assert not [line for line in moved.split("\n") if line.startswith("include ")], moved
