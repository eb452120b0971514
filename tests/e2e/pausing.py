"""A long look at a server that stalls as it is reported, in a process that can be stopped whole.

python -m e2e.pausing FOLDER SECONDS HOW
"""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from webdyno.config import Catalogue, CommandLine, Draft
from webdyno.core.load import Load
from webdyno.core.records import SlotRecord
from webdyno.host.this_machine import Testbed
from webdyno.load.interface import Expectation, LoadOrder, Request
from webdyno.load.loadgen import Loadgen
from webdyno.measure.backend import CourseTracing, PointTestbed
from webdyno.measure.local_backend import Agent, VariantTestbed
from webdyno.measure.long_look import record_of
from webdyno.measure.planned import PlannedVariant
from webdyno.systems.variants import resolve

VARIANT = "a"
RAMP_UP_S, WINDOW_S = 0.5, 0.025
EVERY_S, STALL_S = 3, 1
CONNECTIONS = 8
TAKES_S = 0.003
"""A response, so that who goes before all others on the machine leaves them the CPUs."""
SERVER = f"""
import asyncio, subprocess, sys, time

ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: 5\\r\\n\\r\\nhello"

class Hello(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        answers = ANSWER * data.count(b"\\r\\n\\r\\n")
        asyncio.get_running_loop().call_later({TAKES_S}, self.transport.write, answers)

def sleeps():
    time.sleep({STALL_S})

def burns():
    end = time.monotonic() + {STALL_S}
    while time.monotonic() < end: pass

def stops():
    subprocess.run(["sh", "-c", "kill -STOP $PPID; sleep {STALL_S}; kill -CONT $PPID"])

async def main():
    loop = asyncio.get_running_loop()
    await loop.create_server(Hello, "127.0.0.1", int(sys.argv[1]))
    while True:
        await asyncio.sleep({EVERY_S - STALL_S})
        if sys.argv[2] != "steady":
            globals()[sys.argv[2]]()

asyncio.run(main())
"""


def look(folder: Path, look_s: float, how: str) -> Iterator[str]:
    """Load a server without a break: say when that begins, then its record, and one as a slot."""
    (folder / "server.py").write_text(SERVER)
    testbed = Testbed()
    variant, began_at = _variant(folder, how), datetime.now(UTC)
    agent = Agent(
        [variant], {VARIANT: VariantTestbed(testbed, lambda: Loadgen(testbed.split.client))}
    )
    (folder / "kept").mkdir()
    try:
        url = agent.start(VARIANT, folder / "kept").url
        agent.get_ready(VARIANT)
        order = LoadOrder(
            id="long look",
            url=url,
            requests=(Request("/", Expectation(200)),),
            load=variant.load,
            duration_s=look_s,
            ramp_up_s=RAMP_UP_S,
            window_s=WINDOW_S,
        )
        yield "begins"
        slot = PointTestbed(agent, agent).slot(VARIANT, order, CourseTracing(2 * WINDOW_S))
        yield record_of(slot, variant, WINDOW_S, RAMP_UP_S).model_dump_json()
        as_slot = SlotRecord(
            round=1,
            slot=0,
            variant=VARIANT,
            phase="measure",
            started_at=began_at,
            load=slot.load,
            servers=slot.used.servers,
            readings=slot.used.readings,
        )
        yield as_slot.model_dump_json()
    finally:
        agent.end()


def _variant(folder: Path, how: str) -> PlannedVariant:
    table = {"stack": f"cmd:{sys.executable} server.py $PORT {how}"}
    draft = Draft.of(CommandLine({"variants": {VARIANT: table}}, {}), [])
    draft, catalogue = resolve(draft, Catalogue.load(), folder, lambda _: None, lambda _: None)
    stack, site = catalogue.stack(draft.data["variants"][VARIANT]["stack"]), catalogue.site("own")
    return PlannedVariant(
        VARIANT, stack, {}, site, Load(connections=CONNECTIONS), (), frozenset(), None, None
    )


if __name__ == "__main__":
    folder, look_s, how = sys.argv[1:]
    for line in look(Path(folder), float(look_s), how):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
