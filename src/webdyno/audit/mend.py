"""Puts ab's labels and values together again that a conversion from PDF set on separate lines."""

import re
from collections.abc import Iterable, Iterator

from webdyno.readers.ab import LABELS
from webdyno.readers.lines import Line

_SHAPES = {
    "text": re.compile(rf"(?!(?:{'|'.join(LABELS)}):)\S.*[^:]$"),
    "count": re.compile(r"\d{1,18}$"),
    "bytes": re.compile(r"\d{1,18} bytes$"),
    "seconds": re.compile(r"\d{1,9}(?:\.\d{1,9})? seconds$"),
    "[#/sec]": re.compile(r"\d{1,12}(?:\.\d{1,9})? \[#/sec\]"),
    "[ms]": re.compile(r"\d{1,12}(?:\.\d{1,9})? \[ms\]"),
    "[Kbytes/sec]": re.compile(r"\d{1,12}(?:\.\d{1,9})? \[Kbytes/sec\]"),
    "percent": re.compile(r"\d{1,12}(?: \(longest request\))?$"),
}
_PERCENT = re.compile(r"\d{2,3}%$")


def mended(lines: Iterable[Line]) -> Iterator[Line]:
    """Join a label that stands alone with the value right below it, or else right above it."""
    label: Line | None = None
    value: Line | None = None
    for line in lines:
        text = line.text
        if not text:
            yield line
            continue
        shape = _shape(text)
        if shape:
            if value and shape not in {"text", "percent"} and _SHAPES[shape].match(value.text):
                yield Line(line.number, f"{text} {value.text}")
                label, value = None, None
            else:
                label, value = line, None
        elif label and _SHAPES[_shape(label.text) or "text"].match(text):
            yield Line(label.number, f"{label.text} {text}")
            label, value = None, None
        else:
            label = None
            value = line if text[0].isdigit() and len(text) < 60 else None
            yield line


def _shape(text: str) -> str | None:
    """Say what kind of value a label lacks; None for a line that is no lonely label."""
    if text[-1] == ":":
        return LABELS.get(text[:-1])
    return "percent" if text[-1] == "%" and _PERCENT.match(text) else None
