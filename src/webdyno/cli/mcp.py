"""`webdyno mcp`: webdyno as tools for agents."""

from importlib.util import find_spec

from webdyno.model.errors import OperationError
from webdyno.model.exit_codes import Exit


def mcp() -> Exit:
    """Offer compare, gate, capacity, explain and report as tools to an agent.

    It speaks the Model Context Protocol on standard input and output. An agent starts it in the
    folder of your application; runs are kept in runs/ there.

    For example

        claude mcp add webdyno -- webdyno mcp

        webdyno mcp
    """
    if find_spec("mcp.server") is None:
        raise OperationError(
            "the tools for agents take the extra 'mcp' of webdyno: install 'webdyno[mcp]'"
        )
    from webdyno.mcp.server import make_server

    make_server().run("stdio")
    return Exit.OK
