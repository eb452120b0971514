"""What kernels say of stolen time."""

import gzip
from pathlib import Path

import pytest

from webdyno.probes.cpu import BUILT_WITH, says_so

OTHER = b"# CONFIG_PARAVIRT_TIME_ACCOUNTING is not set\n"


@pytest.mark.parametrize("built", [BUILT_WITH + b"\n", OTHER])
def test_it_is_read_where_the_kernel_or_a_distribution_leaves_it(
    tmp_path: Path, built: bytes
) -> None:
    keeps = built != OTHER
    assert not says_so(tmp_path, "6.1")
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/config-6.1").write_bytes(built)
    assert says_so(tmp_path, "6.1") is keeps
    assert not says_so(tmp_path, "6.2")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/config.gz").write_bytes(gzip.compress(built))
    assert says_so(tmp_path, "6.2") is keeps
