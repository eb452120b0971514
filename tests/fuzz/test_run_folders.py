"""Run folders that were cut, flipped or nested, or are no files: reported, and nothing waits."""

import json
import os
import shutil
import socket
from collections.abc import Callable, Sequence
from contextlib import chdir
from pathlib import Path
from random import Random

from builders import SimulatedVariant, simulated_run
from fuzz import nasty
from fuzz.child import typed
from fuzz.driver import check_end, each_case, sweep

HEAD, RECORDS, FLEET = "run.json", "slots.jsonl", "fleet/fleet.json"
KEYS = ["kind", "load", "round", "variant", "format", "experiment", "runs", "members", "hosts"]
COMMANDS = [
    *(["report", "bad"], ["diff", "bad", "whole"], ["diff", "whole", "bad"], ["explain", "bad"]),
    *(
        ["report", "bad", "--format=parquet"],
        ["report", "bad", "whole"],
        ["report", "fleet"],
        ["resume", "bad"],
    ),
    *(["report", "fleet"], ["diff", "fleet/a", "bad"]),
]


def _bent(file: Path, random: Random) -> None:
    whole = file.read_text(encoding="utf-8")
    lines = whole.splitlines() if file.name == RECORDS else [whole]
    for _ in range(random.choice([1, 1, 3])):
        at = random.randrange(len(lines))
        if random.random() < 0.6:
            try:
                data = json.loads(lines[at])
                nasty.changed(data, random, KEYS)
                lines[at] = json.dumps(data)
            except (ValueError, RecursionError, IndexError, AttributeError):  # bent before
                continue
        else:
            lines[at] = nasty.bent(lines[at], random)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")


def _flipped(file: Path, random: Random) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(random.choice([1, 8, 200])):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    file.write_bytes(content)


def _cut(file: Path, random: Random) -> None:
    os.truncate(file, random.randrange(file.stat().st_size))


def _without_end(file: Path, random: Random) -> None:
    os.truncate(file, random.choice([2**26, 2**33, 2**42]))


def _digits(file: Path, _: Random) -> None:
    file.write_text(file.read_text(encoding="utf-8").replace("1", "1" * 5000, 1), encoding="utf-8")


def _other(file: Path, random: Random) -> None:
    file.unlink()
    what = random.choice(["pipe", "device", "loop", "folder", "socket", "nothing", "elsewhere"])
    if what == "pipe":
        os.mkfifo(file)
    elif what == "folder":
        file.mkdir()
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as bound, chdir(file.parent):
            bound.bind(file.name)
    elif what != "nothing":
        targets = {"device": "/dev/zero", "loop": str(file), "elsewhere": "/etc/passwd"}
        file.symlink_to(targets[what])


DAMAGES: Sequence[Callable[[Path, Random], None]] = [
    *(_bent, _bent, _bent, _bent, _flipped, _cut, _without_end, _digits, _other, _other),
]


@sweep(quick=0, whole=240)
def test_a_damaged_run_is_read_or_refused(tmp_path: Path, seed: int, cases: range) -> None:
    good = tmp_path / "good"
    variants = {"apache": SimulatedVariant(stack="apache-event"), "nginx": SimulatedVariant()}
    for name in ("whole", "bad", "fleet/a", "fleet/b"):
        simulated_run(variants, seed=len(name)).stored(good / name)
    (good / FLEET).write_text(json.dumps({"runs": ["a", "b"], "hosts": {"a": "x", "b": "y"}}))

    def one(case: int) -> None:
        random = Random(f"{seed}/run/{case}")
        folder = tmp_path / "case"
        shutil.copytree(good, folder)
        try:
            damaged = random.choice([f"bad/{HEAD}", f"bad/{RECORDS}", f"bad/{RECORDS}", FLEET])
            random.choice(DAMAGES)(folder / damaged, random)
            said = typed(random.choice(COMMANDS), folder)
            check_end(said)
        finally:
            shutil.rmtree(folder)

    each_case(seed, cases, one)
