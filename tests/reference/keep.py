"""Adds runs to those that are kept, called as their folders are: `tests/reference/keep.py FOLDER…`.

Paths of whoever recorded it become neutral ones. Nothing is kept of which the verdict would be
another one than the folder's own. Afterwards `WEBDYNO_REWRITE_VERDICTS=1` writes its verdict, and
`WEBDYNO_REWRITE_SNAPSHOTS=1` what is said of it.
"""

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from reference.recorded import pack, unpacked
from reference.verdicts import verdicts_of
from webdyno.comparison import judge_sweep
from webdyno.measure.folder import HEAD_FILE, RunFolder
from webdyno.measure.records_file import RECORDS_FILE

PLACE = re.compile(r"/(?:work|root|home|tmp|var/tmp)(?:/[\w.+@-]+)*/(?=[\w.+@-]+)")
NEUTRAL = "/srv/"


def keep(name: str, folder: Path) -> None:
    """Keep what the judge reads of a run, without the places where it was recorded."""
    files = {
        file: PLACE.sub(NEUTRAL, (folder / file).read_text(encoding="utf-8"))
        for file in (HEAD_FILE, RECORDS_FILE)
    }
    pack(name, files)
    with tempfile.TemporaryDirectory() as below:
        kept = _judged(unpacked(name, Path(below)))
    if kept != _judged(RunFolder.open(folder)):
        raise SystemExit(f"{folder}: judged otherwise without its paths; not fit to be kept")


def _judged(folder: RunFolder) -> str:
    run = folder.data()
    return PLACE.sub(NEUTRAL, repr(verdicts_of(run, judge_sweep(run))))


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        keep(Path(argument).name, Path(argument))
