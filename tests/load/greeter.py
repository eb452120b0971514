"""A greeter by gRPC whose service `greeter.proto` has, without code that is made of it.

Its requests and replies are alike on the wire, so that it sends back what it gets. It says what it
is by reflection, and by the health protocol that it is serving.
"""

import base64
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc

from webdyno.load.proto import compiled

PROTO = """
syntax = "proto3";
package hello;
import "place.proto";
message Request { string name = 1; hello.Place place = 2; }
message Reply { string text = 1; hello.Place place = 2; }
service Greeter {
  rpc Say(Request) returns (Reply);
  rpc Talk(stream Request) returns (stream Reply);
}
"""
PLACE = """
syntax = "proto3";
package hello;
message Place { string city = 1; }
"""
SERVING = b"\x08\x01"
Reflect = Callable[[Iterator[bytes], grpc.ServicerContext], Iterator[bytes]]


def written(folder: Path) -> Path:
    """Write the service's files, and return the one that has it."""
    (folder / "place.proto").write_text(PLACE)
    (folder / "greeter.proto").write_text(PROTO)
    return folder / "greeter.proto"


def say(request: bytes, context: grpc.ServicerContext) -> bytes:
    """Send it back, with what else was sent; who is called slow takes too long."""
    sent = {item.key: item.value for item in context.invocation_metadata()}
    if sent.get("x-fails"):
        context.abort(grpc.StatusCode.PERMISSION_DENIED, f"not {sent['x-fails']}")
    if b"slow" in request:
        time.sleep(max(0.0, context.time_remaining()) + 0.1)
    if sent.get("x-packs"):
        context.set_compression(grpc.Compression.Gzip)
    return request


def _field(number: int, content: bytes) -> bytes:
    """As protobuf has it: what is shorter than 128 bytes has its length in one."""
    length, head = len(content), bytearray([number << 3 | 2])
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes([*head, length]) + content


def _files(descriptors: bytes) -> dict[str, bytes]:
    """Return the files of a set by name."""
    files: dict[str, bytes] = {}
    at = 0
    while at < len(descriptors):
        at, length, shift = at + 1, 0, 0
        while True:
            byte = descriptors[at]
            length, shift, at = length | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                break
        content = descriptors[at : at + length]
        at += length
        files[content[2 : 2 + content[1]].decode()] = content
    return files


def reflecting(folder: Path) -> Reflect:
    """Return what answers each question with the file that it is about, without its imports."""
    files = _files(base64.b64decode(compiled(written(folder), folder, "a test")))

    def reflect(questions: Iterator[bytes], _: grpc.ServicerContext) -> Iterator[bytes]:
        for question in questions:
            asked = question[2:].decode()
            name = "greeter.proto" if asked == "hello.Greeter" else asked
            if re.fullmatch(r"\w+\.proto", name):
                yield _field(4, _field(1, files[name]))
            else:
                yield _field(7, b"\x08\x05" + _field(2, b"no such symbol"))

    return reflect


@contextmanager
def greeter(reflect: Reflect | None = None, version: str = "v1") -> Iterator[int]:
    """Serve it, and return its port."""
    server = grpc.server(ThreadPoolExecutor(4))
    services = {
        "hello.Greeter": {
            "Say": grpc.unary_unary_rpc_method_handler(say),
            "Talk": grpc.stream_stream_rpc_method_handler(lambda each, _: each),
        },
        "grpc.health.v1.Health": {
            "Check": grpc.unary_unary_rpc_method_handler(lambda *_: SERVING),
        },
    }
    if reflect is not None:
        handler = grpc.stream_stream_rpc_method_handler(reflect)
        services[f"grpc.reflection.{version}.ServerReflection"] = {"ServerReflectionInfo": handler}
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(name, its) for name, its in services.items()]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()
