"""One call of the Python API as a process of its own.

`python -m webdyno.interfaces.python CALL`: the arguments are a JSON object on standard input, where
nobody else can read them. What is reported goes to standard error, the answer to standard output.
`webdyno.host.children` gives both to who starts it.
"""

import json
import os
import sys
from pathlib import Path

from webdyno.core.debug_log import debug_log
from webdyno.core.errors import Exit, UserError
from webdyno.core.registry import import_part, python_calls
from webdyno.launch.ending import (
    end_by_signals,
    end_with,
    leave_matrices_one_thread,
    reported_end,
)


def main(call: str) -> Exit:
    """Make the call; give the exit code that fits."""
    end_by_signals()
    arguments = _read_arguments()
    leave_matrices_one_thread()
    calls = python_calls()
    if call not in calls:
        return reported_end(UserError(f"{call}: is no call; there are {', '.join(calls)}"), call)
    try:
        with debug_log([call, *json.loads(arguments)]):  # without values, which may be secrets
            # Its import takes a while: Ctrl-C is heard by now.
            answer = import_part(calls[call])(**json.loads(arguments), by_keyword=False)
        for result in answer.values() if isinstance(answer, dict) else filter(None, [answer]):
            print(result.headline)  # noqa: T201
    except (Exception, KeyboardInterrupt) as end:  # noqa: BLE001 (all end the process)
        return reported_end(end, call)
    return Exit.OK


def _read_arguments() -> str:
    """Read standard input, and leave nothing of it to programs that are started."""
    arguments = sys.stdin.read()
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    return arguments


end_with(main(*sys.argv[1:]))
