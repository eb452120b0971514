"""A language model's server without a model: it sends tokens when its settings say so.

A thread for each connection sleeps until a token is due, by the monotonic clock, so that delays
don't add up. Requests and chunks are those of OpenAI's API.
"""

import json
import os
import random
import socketserver
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

FIRST_S, GAP_S = float(os.environ["TTFT_MS"]) / 1e3, float(os.environ["ITL_MS"]) / 1e3
TOKENS, JITTER = int(os.environ["TOKENS"]), float(os.environ["JITTER"])
AT_A_TIME = threading.Semaphore(int(os.environ["PARALLEL"]))
DRAWN = random.Random(int(os.environ["SEED"]))
CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"


def jittered(delay_s: float) -> float:
    """Return a delay of one token."""
    return delay_s * (1 + JITTER * DRAWN.uniform(-1, 1))


def delays_s(asked: dict) -> list[float]:
    """Return when each token of a response is due, after its request began to be worked on."""
    most = asked.get("max_completion_tokens") or asked.get("max_tokens") or TOKENS
    due_s, all_due_s = jittered(FIRST_S), []
    for _ in range(min(int(most), TOKENS)):
        all_due_s.append(due_s)
        due_s += jittered(GAP_S)
    return all_due_s


class Conversation(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Say that it is ready, or which model it has."""
        if self.path == "/health":
            self.answer({"status": "ok"})
        elif self.path == "/v1/models":
            self.answer({"object": "list", "data": [{"id": "none", "object": "model"}]})
        else:
            self.answer({"error": {"message": f"there is no {self.path}"}}, 404)

    def do_POST(self) -> None:
        """Respond with as many tokens as were asked for, at most those of the settings."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            asked = json.loads(body)
            known = self.path in {CHAT, COMPLETION} and isinstance(asked, dict)
        except ValueError:
            known = False
        if not known:
            self.answer({"error": {"message": "POST JSON to " + CHAT}}, 400)
            return
        with AT_A_TIME:
            due_s, began_s = delays_s(asked), time.monotonic()
            if asked.get("stream"):
                self.stream(asked, due_s, began_s)
            else:
                wait_until(began_s + due_s[-1] if due_s else began_s)
                self.answer(whole(self.path, len(due_s)))

    def stream(self, asked: dict, due_s: list[float], began_s: float) -> None:
        """Send each token when it is due."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at_s, chunk in self.chunks(asked, due_s):
            wait_until(began_s + at_s)
            event = b"data: %s\n\n" % chunk.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")

    def chunks(self, asked: dict, due_s: list[float]) -> Iterator[tuple[float, str]]:
        """Yield what is sent, and when: who speaks, the tokens, the end."""
        if self.path == CHAT:
            yield 0.0, part(self.path, "", role="assistant")
        for number, at_s in enumerate(due_s):
            yield at_s, part(self.path, f"token{number} ")
        end_s = due_s[-1] if due_s else 0.0
        yield end_s, part(self.path, "", finish_reason="length")
        if (asked.get("stream_options") or {}).get("include_usage"):
            yield end_s, json.dumps(made(self.path, [], usage=usage(len(due_s))))
        yield end_s, "[DONE]"

    def answer(self, what: dict, status: int = 200) -> None:
        """Send a response of JSON."""
        body = json.dumps(what).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log no requests."""


def wait_until(at_s: float) -> None:
    """Sleep until a moment of the monotonic clock."""
    left_s = at_s - time.monotonic()
    if left_s > 0:
        time.sleep(left_s)


def made(path: str, choices: list, **more: object) -> dict:
    """Return an object of the API."""
    kind = "chat.completion.chunk" if path == CHAT else "text_completion"
    return dict(id="none", object=kind, model="none", choices=choices, **more)


def part(path: str, text: str, role: str | None = None, finish_reason: str | None = None) -> str:
    """Return a chunk of a stream."""
    delta = {key: value for key, value in [("role", role), ("content", text)] if value}
    says = {"delta": delta} if path == CHAT else {"text": text}
    return json.dumps(made(path, [dict(index=0, finish_reason=finish_reason, **says)]))


def whole(path: str, tokens: int) -> dict:
    """Return a response that is no stream."""
    text = "".join(f"token{number} " for number in range(tokens))
    message = {"role": "assistant", "content": text}
    says = {"message": message} if path == CHAT else {"text": text}
    choice = dict(index=0, finish_reason="length", **says)
    return made(path, [choice], usage=usage(tokens))


def usage(tokens: int) -> dict:
    """Return how many tokens a response had."""
    return {"prompt_tokens": 0, "completion_tokens": tokens, "total_tokens": tokens}


class Server(socketserver.ThreadingTCPServer):
    """A thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, *_: object) -> None:
        """Connections that clients close are none of our concern."""


if __name__ == "__main__":
    Server((os.environ["HOST"], int(os.environ["PORT"])), Conversation).serve_forever()
