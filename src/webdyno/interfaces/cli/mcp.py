"""`webdyno mcp`: webdyno as tools for agents."""

from typing import Annotated

from cyclopts import Parameter

from webdyno.core.errors import OperationError
from webdyno.core.exit_codes import Exit


def mcp(
    *,
    allow_commands: Annotated[
        bool,
        Parameter(help="Let tools run what the agent names: cmd:, rev:, conf:, image:, [state]."),
    ] = False,
) -> Exit:
    """Offer compare, gate, capacity, explain and report as tools to an agent.

    It speaks the Model Context Protocol on standard input and output. An agent starts it in the
    folder of your application; runs are kept in runs/ there. Without --allow-commands its tools
    measure stacks of the catalog and what runs already (url:); gates build revisions, and need it.

    For example

        claude mcp add webdyno -- webdyno mcp --allow-commands

        webdyno mcp
    """
    try:
        from webdyno.interfaces.mcp.server import make_server
    except ModuleNotFoundError as lacking:
        if (lacking.name or "").startswith("webdyno"):
            raise
        raise OperationError(
            f"the tools for agents take the extra 'mcp' of webdyno ({lacking.name} isn't there): "
            "install 'webdyno[mcp]'"
        ) from None
    make_server(allow_commands=allow_commands).run("stdio")
    return Exit.OK
