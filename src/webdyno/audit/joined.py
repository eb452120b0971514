"""What an output and the command above it say together."""

from dataclasses import replace

from webdyno.audit.options import ALIASES, DEFAULTS
from webdyno.readers.output import Command, Output

_USERS = {"k6", "locust"}
"""Tools whose users come and go: there are fewer or more of them than the command says."""
MORE = 1.01
"""Times the requests that a command asks for from which an output isn't its own."""


def prints_for(tool: str) -> str:
    """Give the tool as which another one prints and is called."""
    return ALIASES.get(tool, tool)


def is_another(command: Command, output: Output) -> bool:
    """Whether an output can't be of this command, by its connections or number of requests."""
    asked, printed = command.concurrency, output.concurrency
    if asked and printed and asked != printed and output.tool not in _USERS:
        return True
    if command.time_limit_s or command.unread or not command.requests or not output.requests:
        return False
    most = (printed or asked or 1) * (command.streams or 1)
    return output.requests > MORE * command.requests + most


def joined(output: Output, command: Command) -> Output:
    """Give an output with what its command line says."""
    if command.streams and output.protocol == "http/1.1":  # that is what h2load's -m means there
        by = f"-m {command.streams}"
        command = replace(command, streams=None, pipelining=command.streams, pipelined_by=by)
    defaults = DEFAULTS.get(output.tool, {}) if command.whole and not command.unread else {}
    concurrency = output.concurrency or command.concurrency
    if concurrency is None and defaults:
        concurrency = min(defaults["concurrency"], command.requests or defaults["requests"])
    each_rps = command.each_rps * (concurrency or 1) if command.each_rps else None
    demanded = output.demanded_rps or command.demanded_rps or each_rps
    # wrk has no -R: whatever its output looks like, with one it is wrk2.
    wrk2 = output.tool == "wrk" and command.demanded_rps is not None
    return replace(
        output,
        tool="wrk2" if wrk2 else output.tool,
        command=command,
        host=output.host or command.host,
        port=output.port or command.port,
        path=output.path or command.path,
        pipelining=output.pipelining or command.pipelining or 1,
        streams=command.streams or (1 if command.whole else None),
        concurrency=concurrency,
        keepalive_requested=output.keepalive_requested or command.keepalive or None,
        time_limit_s=command.time_limit_s or output.time_limit_s,
        demanded_rps=demanded,
        loop="open" if command.open_loop else output.loop or "closed",
    )
