"""What the client could not do or say, and what an audit does not know of it."""

from collections.abc import Iterator, Mapping

from webdyno.audit.prose import RAN_OUT, RanOut
from webdyno.audit.reader import AuditedText
from webdyno.audit.rules import AuditRule, Violation, numeral
from webdyno.formats.output import Command, Output


def ran_out(output: Output) -> Mapping[str, int]:
    """Give what the client ran out of, and how many requests it never sent for it.

    A tool may name its errors without counting them: then the count is 0, unless all are of a kind.
    """
    counts = {"file descriptors": output.out_of_descriptors} if output.out_of_descriptors else {}
    errors = output.errors | ({output.gave_up: 1} if output.gave_up else {})
    uncounted = not any(errors.values())
    for what, words in RAN_OUT.items():
        mine = {error: count for error, count in errors.items() if words.search(error)}
        if mine:
            all_of_them = (output.failed or 0) if uncounted and mine == errors else 0
            counts[what] = counts.get(what, 0) + (sum(mine.values()) or all_of_them)
    return counts


def _client_limit(output: Output) -> Iterator[Violation]:
    line = output.where("out_of_descriptors", "failed", "gave_up", "by_status")
    for what, count in ran_out(output).items():
        times = f" {numeral(count)} times" if count > 1 else ""
        yield Violation(line, f"the client ran out of {what}{times}")


def _said_to_run_out(document: AuditedText) -> Iterator[Violation]:
    """Name lines next to outputs, as k6 and siege log errors; a proxy may say the same."""
    if any(True for _ in document.web_outputs):
        for seen in document.of(RanOut):
            yield Violation(seen.line, f"somebody ran out of {seen.what}", serious=False)


def _first_million(output: Output) -> Iterator[Violation]:
    if not output.first_counted or not output.requests:
        return
    what = f"{output.tool} keeps the first {numeral(output.first_counted)} responses of "
    what += f"{numeral(output.requests)}: statuses and percentiles are of those, and its average "
    what += f"and size are {numeral(output.requests / output.first_counted)} times too large"
    yield Violation(output.where("by_status"), what, serious=False)


def _other_command(output: Output) -> Iterator[Violation]:
    command = output.other_command
    if not command:
        return
    if command.concurrency and output.concurrency and command.concurrency != output.concurrency:
        asks = f"{numeral(command.concurrency)} connections"
        has = f"{numeral(output.concurrency)}"
        line = output.where("concurrency")
    else:
        asks = f"{numeral(command.requests or 0)} requests"
        has = f"{numeral(output.requests or 0)}"
        line = output.where("requests")
    what = f"the command in line {command.line} asks for {asks}, and the output has {has}"
    yield Violation(line, what, serious=False)


def _unread_options(document: AuditedText) -> Iterator[Violation]:
    """Name the options that nobody here knows: what they change was not looked at."""
    joined = (each.command for each in document.of(Output))
    for command in sorted(
        (*filter(None, joined), *document.of(Command)), key=lambda each: each.line
    ):
        if command.unread:
            options = ", ".join(f"`{option}`" for option in command.unread)
            what = f"{options} of {command.tool}: not known here"
            yield Violation(command.line, what, serious=False, tool=command.tool)


CLIENT_LIMIT = AuditRule(
    "client-limit",
    _client_limit,
    why="The load that was requested was never put on the server: these requests were not "
    "sent, and the rest is what the client could do.",
    instead="Keep connections open (webdyno load URL --keepalive always), add addresses to "
    "connect from (--source ADDRESS) for ports, and raise `ulimit -n` for descriptors.",
)

OUTPUT_RULES = (
    CLIENT_LIMIT,
    AuditRule(
        "first-million",
        _first_million,
        why="What came later is in the throughput alone: a server that broke in the last minute "
        "looks well.",
        instead="webdyno load URL -c 64 --time 30s counts each response, whatever their number.",
    ),
    AuditRule(
        "other-command",
        _other_command,
        why="The output isn't of this command, so its settings aren't known; they were not used.",
        instead="Keep command and output together: webdyno run keeps every setting in the run's "
        "folder.",
    ),
)

DOCUMENT_RULES = (
    CLIENT_LIMIT.also(_said_to_run_out),
    AuditRule(
        "unread-option",
        _unread_options,
        why="It may change what is sent, how fast, or over how many connections. This was not "
        "looked at, and what depends on it is no more than a note.",
        instead="webdyno load URL -c 64 --time 30s --format json writes down every setting.",
    ),
)
