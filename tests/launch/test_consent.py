"""Nothing is installed, and no variable of root's is passed on, without a yes."""

import os
import shutil
from pathlib import Path

import pytest

from builders import SimulatedVariant, simulated_run
from launch.answering import caller, own
from webdyno.core.errors import OperationError, UserError
from webdyno.core.service import Need, Own
from webdyno.core.stack import Stack
from webdyno.launch.consent import agree_to_secrets, provide


@pytest.mark.skipif(not shutil.which("apt-get"), reason="needs apt-get")
def test_without_a_terminal_nothing_is_installed(answers: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("something was run")

    answers.setattr("webdyno.servers.needs.run_program", forbidden)
    need = Need(command=["no-such-program"], apt="no-such-package")
    with pytest.raises(
        OperationError, match=r"nothing was installed.*--yes(.|\n)*apt-get install .*no-such"
    ):
        provide([], [], [need], caller())
    with pytest.raises(AssertionError, match="something was run"):
        provide([], [], [need], caller(yes=True))


def with_service(its: Stack, **keys: object) -> Stack:
    """Return a stack of one service, some of whose keys are others."""
    role = its.services["m"]
    return its.replace(services={"m": role.replace(service=role.service.replace(**keys))})


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whose variables others would get")
def test_another_one_s_program_gets_variables_of_root_s_by_a_yes(
    tmp_path: Path, answers: pytest.MonkeyPatch
) -> None:
    """He wrote the repository that root measures, and chose what its file names."""
    answers.delenv("SUDO_UID", raising=False)
    its = own(tmp_path).stack("mine")
    mine = its.services["m"].service
    experiment = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=1).head
    plain, asking = (
        experiment.experiment.replace(title=title) for title in ("t", "${env:ROOTS_TOKEN}")
    )

    def stack(**keys: object) -> Stack:
        return with_service(its, own=Own(written="cmd:x"), **keys)

    naming = stack(environment={"TOKEN": "${env:ROOTS_TOKEN}"})
    alone = caller()
    for each, asked in ((naming, plain), (stack(), asking)):
        agree_to_secrets([each], [asked], alone)
        os.chown(mine.folder, 12345, 12345)
        with pytest.raises(UserError, match=r"cmd:x runs as user 12345, .*ROOTS_TOKEN .*--yes"):
            agree_to_secrets([each], [asked], alone)
        agree_to_secrets([stack()], [plain], alone)
        agree_to_secrets([each], [asked], caller(yes=True))
        with answers.context() as by_sudo:
            by_sudo.setenv("SUDO_UID", "12345")
            agree_to_secrets([each], [asked], alone)
        os.chown(mine.folder, 0, 0)
