"""Text that others wrote, made safe to show: in a terminal, and on a page."""

PICTURES = 0x2400
"""Unicode's pictures of the control characters, in their order."""
KEPT = "\n\t"
TURNING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that turn the direction of what follows, and with it the line around (Boucher and
Anderson, Trojan Source, USENIX Security 2023). Letters that run from right to left need none."""
SHOWN = {
    **{code: chr(PICTURES + code) for code in range(0x20) if chr(code) not in KEPT},
    0x7F: "\u2421",
    **dict.fromkeys((*range(0x80, 0xA0), *TURNING), "\ufffd"),
}


def printable(text: str) -> str:
    """Give characters that control instead of showing as pictures, `␛` for escape.

    Lines and tabs stay.
    """
    return text.translate(SHOWN)


def finished(value: object) -> object:
    """Give what a template's expression came to with its texts printable."""
    return printable(value) if isinstance(value, str) else value
