"""Which files a `.proto` file imports, and that it can have no others read."""

from pathlib import Path

import pytest

from webdyno.core.errors import UserError
from webdyno.load.proto import MOST_FILES, compiled, imported

HELLO = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
import public 'kinds/place.proto'; // not import "none/such.proto"
message Hello { Place place = 1; google.protobuf.Timestamp at = 2; }
"""
PLACE = 'syntax = "proto3"; import "kinds/town.proto"; message Place { Town town = 1; }'
TOWN = 'syntax = "proto3"; message Town { string name = 1; }'


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    """A file two folders below `tmp_path`, from one of which its imports are named."""
    (tmp_path / "protos/hello").mkdir(parents=True)
    (tmp_path / "protos/kinds").mkdir()
    (tmp_path / "protos/kinds/place.proto").write_text(PLACE)
    (tmp_path / "protos/kinds/town.proto").write_text(TOWN)
    (hello := tmp_path / "protos/hello/hello.proto").write_text(HELLO)
    return hello


def test_imports_are_looked_for_up_to_where_the_file_is_named(tmp_path: Path, hello: Path) -> None:
    kinds = tmp_path / "protos/kinds"
    assert imported(hello, tmp_path, "a.toml:1") == [kinds / "place.proto", kinds / "town.proto"]
    assert compiled(hello, tmp_path, "a.toml:1")
    for top in (hello.parent, tmp_path / "elsewhere"):
        assert imported(hello, top, "a.toml:1") == []
        with pytest.raises(UserError, match=r"a.toml:1: .*hello/hello.proto:3:1: import 'kinds/p"):
            compiled(hello, top, "a.toml:1")


@pytest.mark.parametrize("name", ["../secret", "kinds/../../secret", "/etc/hostname", "", "a\0b"])
def test_imports_lead_nowhere_else(tmp_path: Path, hello: Path, name: str) -> None:
    (tmp_path / "secret").write_text("token")
    hello.write_text(f'import "{name}";')
    assert imported(hello, hello.parent, "a.toml:1") == []
    with pytest.raises(UserError) as refused:
        compiled(hello, hello.parent, "a.toml:1")
    assert "token" not in str(refused.value)


def test_links_are_no_imports(tmp_path: Path, hello: Path) -> None:
    (tmp_path / "secret").write_text("token")
    (place := tmp_path / "protos/kinds/place.proto").unlink()
    place.symlink_to(tmp_path / "secret")
    with pytest.raises(UserError, match=r"place.proto is a symbolic link"):
        imported(hello, tmp_path, "a.toml:1")
    place.unlink()
    (tmp_path / "protos/kinds/town.proto").unlink()
    place.parent.rmdir()
    place.parent.symlink_to("/etc")
    (place.parent.parent / "hello/hello.proto").write_text('import "kinds/hostname";')
    with pytest.raises(UserError, match=r"kinds in .* is a link"):
        imported(hello, tmp_path, "a.toml:1")


def test_what_others_may_change_is_no_import(open_folder: Path) -> None:
    (open_folder / "kinds").mkdir()
    (open_folder / "kinds/place.proto").write_text(TOWN)
    (hello := open_folder / "hello.proto").write_text('import "kinds/place.proto";')
    assert imported(hello, open_folder, "a.toml:1")
    (open_folder / "kinds").chmod(0o777)
    with pytest.raises(UserError, match=r"a.toml:1: others may change .*kinds, and kinds/place"):
        imported(hello, open_folder, "a.toml:1")


def test_a_file_imports_no_more_than_a_service_has(tmp_path: Path, hello: Path) -> None:
    for number in range(MOST_FILES + 1):
        (tmp_path / f"{number}.proto").write_text(f'import "{number + 1}.proto";')
    hello.write_text('import "0.proto";')
    with pytest.raises(UserError, match=f"imports more than {MOST_FILES} files"):
        imported(hello, tmp_path, "a.toml:1")
