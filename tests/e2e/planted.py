"""A look at a small server that does later what it is reported.

python -m e2e.planted FOLDER SECONDS CONNECTIONS KEEPALIVE WORDS…
"""

import sys
from pathlib import Path

from webdyno.config import Catalogue, CommandLine, Draft
from webdyno.core.load import Load
from webdyno.core.records import LongLookRecord
from webdyno.host.this_machine import Testbed
from webdyno.load.interface import Expectation, LoadOrder, Request
from webdyno.load.loadgen import Loadgen
from webdyno.measure.backend import CourseTracing, PointTestbed
from webdyno.measure.local_backend import Agent, VariantTestbed
from webdyno.measure.long_look import record_of, with_failures
from webdyno.measure.planned import PlannedVariant
from webdyno.systems.variants import resolve

VARIANT = "a"
RAMP_UP_S, WINDOW_S = 0.25, 0.025
SERVER = '''
import argparse, asyncio, os, resource, signal, socket, struct, sys, time, zlib

told = argparse.ArgumentParser()
told.add_argument("port", type=int)
told.add_argument("--takes-ms", type=float, default=5)
told.add_argument("--slow-every-s", type=float, default=0, help="a cache expires so often")
told.add_argument("--slow-s", type=float, default=1, help="and fills for so long")
told.add_argument("--slow-factor", type=float, default=2.5)
told.add_argument("--leak-every", type=int, default=0, help="requests per descriptor left open")
told.add_argument("--files", type=int, default=0)
told.add_argument("--rotates-every-s", type=float, default=0, help="its log, and packs it")
told.add_argument("--dies-after", type=int, default=0, help="requests until it is killed")
told.add_argument("--ports", type=int, default=0, help="for connections to what is behind it")
told = told.parse_args()

most = told.files or resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
IP_LOCAL_PORT_RANGE = 51
began_s, served, kept = time.monotonic(), 0, []
rotated_s = began_s


def rotates(now_s):
    """Pack the log and wait for a slow disk, a second in all, while nothing else goes on."""
    global rotated_s
    if now_s - rotated_s < told.rotates_every_s:
        return
    rotated_s = now_s
    zlib.compress(b"a line of a log\\n" * 50_000)
    time.sleep(max(now_s + 1 - time.monotonic(), 0))


async def works():
    """Take the time of one request, longer while the cache fills; no CPU, which others may have."""
    global served
    served += 1
    takes_s, now_s = told.takes_ms / 1e3, time.monotonic()
    every_s = told.slow_every_s
    if every_s and (now_s - began_s) % every_s > every_s - told.slow_s:
        takes_s *= told.slow_factor
    if told.leak_every:
        file = os.open("/dev/null", os.O_RDONLY)
        if served % told.leak_every == 0:
            kept.append(file)
        else:
            os.close(file)
    if told.rotates_every_s:
        rotates(now_s)
    if served == told.dies_after:
        os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(takes_s)


behind = socket.create_server(("127.0.0.1", 0), backlog=4096)


def asks_behind():
    """Open a connection to what is behind it, and never close that."""
    one = socket.socket()
    kept.append(one)
    ports = struct.pack("HH", 61_000 - told.ports, 61_000)
    one.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, ports)
    one.connect(behind.getsockname())
    kept.append(behind.accept()[0])


async def answers(reader, writer):
    try:
        while await reader.readuntil(b"\\r\\n\\r\\n"):
            status, body = b"200 OK", b"hello" * 20
            try:
                await works()
                if told.ports:
                    asks_behind()
            except OSError as error:
                print("error:", error, file=sys.stderr, flush=True)
                status, body = b"500 Oops", b"oops!" * 20
            writer.write(b"HTTP/1.1 %s\\r\\nContent-Length: 100\\r\\n\\r\\n%s" % (status, body))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serves():
    async with await asyncio.start_server(answers, "127.0.0.1", told.port, backlog=512) as server:
        await server.serve_forever()


asyncio.run(serves())
'''

NGINX = """
mkdir logs
printf 'user root; daemon off; pid nginx.pid; error_log logs/error.txt; events {}
http { access_log logs/access.txt; server { listen 127.0.0.1:%s; return 200 hello; } }
' $1 >nginx.conf
(while sleep 2; do mv logs/access.txt logs/$(date +%s%N).txt; kill -USR1 $(cat nginx.pid); done) &
exec nginx -p $PWD/ -c nginx.conf
"""


def look(folder: Path, look_s: float, load: Load, *words: str) -> LongLookRecord:
    """Load a server for so long without a break, and give what was seen."""
    (folder / "server.py").write_text(SERVER)
    (kept := folder / "kept").mkdir()
    testbed = Testbed()
    (folder / "rotated.sh").write_text(NGINX)
    command = "sh rotated.sh $PORT" if words == ("nginx",) else f"{sys.executable} server.py $PORT"
    table = {"stack": " ".join([f"cmd:{command}", *words])}
    draft = Draft.of(CommandLine({"variants": {VARIANT: table}}, {}), [])
    draft, catalogue = resolve(draft, Catalogue.load(), folder, lambda _: None, lambda _: None)
    stack, site = catalogue.stack(draft.data["variants"][VARIANT]["stack"]), catalogue.site("own")
    variant = PlannedVariant(VARIANT, stack, {}, site, load, (), frozenset(), None, None)
    agent = Agent(
        [variant], {VARIANT: VariantTestbed(testbed, lambda: Loadgen(testbed.split.client))}
    )
    try:
        url = agent.start(VARIANT, kept).url
        agent.get_ready(VARIANT)
        order = LoadOrder(
            id="long look",
            url=url,
            requests=(Request("/", Expectation(200)),),
            load=load,
            duration_s=look_s,
            ramp_up_s=RAMP_UP_S,
            window_s=WINDOW_S,
        )
        slot = PointTestbed(agent, agent).slot(VARIANT, order, CourseTracing(2 * WINDOW_S))
        return with_failures(record_of(slot, variant, WINDOW_S, RAMP_UP_S), agent, kept)
    finally:
        agent.end()


if __name__ == "__main__":
    place, seconds, connections, keepalive, *reported = sys.argv[1:]
    asked = Load.model_validate(
        {
            "connections": int(connections),
            "keepalive": keepalive,
            # It would take all CPUs from others for so long.
            "think_s": 0.005 if reported == ["nginx"] else 0,
        }
    )
    sys.stdout.write(look(Path(place), float(seconds), asked, *reported).model_dump_json())
