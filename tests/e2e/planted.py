"""A small server that does later what it is told, for soaks."""

PLANTED = '''
import argparse, asyncio, os, resource, signal, sys, time

told = argparse.ArgumentParser()
told.add_argument("port", type=int)
told.add_argument("--takes-ms", type=float, default=5)
told.add_argument("--slow-every-s", type=float, default=0, help="a cache expires so often")
told.add_argument("--slow-s", type=float, default=1, help="and fills for so long")
told.add_argument("--slow-factor", type=float, default=2.5)
told.add_argument("--leak-every", type=int, default=0, help="requests per descriptor left open")
told.add_argument("--files", type=int, default=1024)
told.add_argument("--dies-after", type=int, default=0, help="requests until it is killed")
told.add_argument("--upstream", default="", help="addresses of a server that is asked, anew")
told = told.parse_args()

resource.setrlimit(resource.RLIMIT_NOFILE, (told.files, told.files))
began_s, served, kept = time.monotonic(), 0, []


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
    if served == told.dies_after:
        os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(takes_s)


async def answers(reader, writer):
    try:
        while await reader.readuntil(b"\\r\\n\\r\\n"):
            status, body = b"200 OK", b"hello" * 20
            try:
                await works()
                if told.upstream:
                    host, _, port = told.upstream.partition(":")
                    asked = await asyncio.open_connection(host, int(port))
                    asked[1].write(b"GET / HTTP/1.0\\r\\nHost: a\\r\\n\\r\\n")
                    await asked[0].read(64)
                    asked[1].close()
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
