"""The command that a Dockerfile's image starts."""

import json
import re

INSTRUCTION = re.compile(
    r"^[ \t]*(FROM|ENTRYPOINT|CMD)[ \t]+(\S(?:.*\S)?)[^\S\n]*$", re.MULTILINE | re.IGNORECASE
)


def image_command(text: str) -> str | None:
    """Return what an image starts by its Dockerfile: the ENTRYPOINT and CMD of its last stage."""
    instructions: dict[str, str] = {}
    for match in INSTRUCTION.finditer(text.replace("\\\n", " ")):
        word = match[1].upper()
        instructions = {} if word == "FROM" else {**instructions, word: match[2]}
    entry, command = (
        _command_words(instructions.get(instruction, "[]")) for instruction in ("ENTRYPOINT", "CMD")
    )
    if isinstance(entry, str):  # a line of shell, which takes no CMD
        return entry
    parts = [*entry, *([command] if isinstance(command, str) else command)]
    return " ".join(parts) or None


def _command_words(command: str) -> str | list[str]:
    try:
        words = json.loads(command)
    except ValueError:
        return command
    return list(map(str, words)) if isinstance(words, list) else command
