"""The rules of sites: what a program has to do for its answer, checked before it is measured.

A site's pages say what a single response is (`paths` in its `site.toml`). What shows only over
several requests, or in the database, is here: a function for each rule, which raises BrokenRule in
words for people. A rule that a site names in `rules` is an entry of RULES.
"""

from collections.abc import Callable, Mapping

from webdyno.model.load import Load
from webdyno.model.stack import Rule, Site
from webdyno.run.rules.fortunes import fortunes
from webdyno.run.rules.items import crud
from webdyno.run.rules.program import BrokenRule, CheckedProgram, database_of
from webdyno.run.rules.upload import json_object, upload
from webdyno.run.rules.world import db, queries, updates
from webdyno.stack.running import RunningStack
from webdyno.stack.sockets import NewSocket
from webdyno.stack.speaking import Conversation, NoResponse

__all__ = ["RULES", "broken_rule"]

RULES: Mapping[Rule, Callable[[CheckedProgram], None]] = {
    "json": json_object,
    "db": db,
    "queries": queries,
    "updates": updates,
    "fortunes": fortunes,
    "crud": crud,
    "upload": upload,
}


def broken_rule(stack: RunningStack, site: Site, load: Load, new_socket: NewSocket) -> str | None:
    """Say which rule of its site a running stack breaks, and how; None if it keeps them all.

    Where the site's database is on another host, or is one that can't be asked, nothing is checked.
    """
    netloc, database = stack.url.partition("://")[2], database_of(stack.services(), site)
    if site.services and database is None:
        return None
    checks = bool(load.tls_verify)
    with Conversation(netloc, load.protocol, load.timeout_s, new_socket, checks) as conversation:
        program = CheckedProgram(conversation, database)
        for rule in site.rules:
            try:
                RULES[rule](program)
            except BrokenRule as broken:
                return str(broken)
            except NoResponse as none:
                return f"{program.last} got no response: {none}"
    return None
