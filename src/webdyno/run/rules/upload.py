"""Rules of `json` and `upload`: an object that is right, and bytes that have been read."""

import hashlib
from random import Random

from webdyno.run.rules.program import BrokenRule, CheckedProgram

MESSAGE = {"message": "Hello, World!"}
SIZES_BYTES = (0, 1, 65_537, 10_000_000)


def json_object(program: CheckedProgram) -> None:
    """The object and nothing else."""
    answer = program.ask("/json").with_status(200)
    if (given := answer.json()) != MESSAGE:
        raise BrokenRule(f"{answer.to} should give {MESSAGE}, and gives {given!r:.80}")


def upload(program: CheckedProgram) -> None:
    """Length and sum of whatever was sent."""
    for size_bytes in SIZES_BYTES:
        body = Random(size_bytes).randbytes(size_bytes)
        headers = {"Content-Type": "application/octet-stream"}
        answer = program.ask("/upload", method="POST", headers=headers, body=body)
        given = answer.with_status(200, f"{size_bytes:,} bytes were sent").json()
        right = {"bytes": size_bytes, "sha256": hashlib.sha256(body).hexdigest()}
        if given != right:
            raise BrokenRule(
                f"{answer.to} with {size_bytes:,} bytes should give {right}, and gives "
                f"{given!r:.120}"
            )
