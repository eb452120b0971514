"""The first response of a stack's front: what shows that it is ready, or what is wrong with it."""

import logging
from collections.abc import Callable

from webdyno.host.this_machine import Testbed
from webdyno.model.service import BAD_REQUEST, OK, SERVER_ERROR, Own
from webdyno.model.stack import Site
from webdyno.stack.ready import (
    FirstRequest,
    FirstResponse,
    Starting,
    UntrustedServer,
    spoken_instead,
    wait_for_response,
    why_silent,
)
from webdyno.stack.service import RunningService

logger = logging.getLogger(__name__)

CLOSED = (
    "what is measured has to be on this port, under this protocol; servers end connections so for "
    "hosts that they don't know (`return 444` of nginx), and where they expect the PROXY protocol"
)
UNREADABLE = "what is measured has to speak HTTP"
ENDLESS = "what is measured has to be answered as a whole; name another path by --path"
ANY_CERTIFICATE = (
    "name it as the certificate does, set SSL_CERT_FILE to a file with the authority that issued "
    "it, or take any by --set load.tls_verify=false"
)
UNREADY = "correct that, or name by --ready a path that shows when it is ready, which is waited for"


def request_of_readiness(own: Own | None, site: Site, asked: FirstRequest | None) -> FirstRequest:
    """Give what shows that a front is ready: of a user's own system what will be measured."""
    if own is None:
        return FirstRequest(site.ready_path, site.page(site.ready_path).matches)
    if own.ready:
        checks = asked is not None and asked.checks_certificate
        return FirstRequest(own.ready, _is_fine, is_patient=True, checks_certificate=checks)
    return asked or FirstRequest(site.ready_path, _is_no_failure)


def first_response(
    front: RunningService,
    request: FirstRequest,
    url: str,
    testbed: Testbed,
    check_alive: Callable[[], None],
) -> FirstResponse:
    """Wait for a front's first response; raise StackDied where none comes that can be measured."""
    own = front.role.service.own
    server = Starting(
        address=front.address,
        check_alive=check_alive,
        is_own=front.listens,
        is_elsewhere=front.is_elsewhere if own and not own.ready_within_s else _never,
        client_entry=testbed.client_entry(),
        within_s=front.role.service.starts_within_s,
    )
    where = f"{url}{request.path}"
    logger.debug("waits until %s answers %s", front.role.service.title, where)
    try:
        answered = wait_for_response(server, request)
    except UntrustedServer as untrusted:
        raise front.died(f"isn't asked for {where}: {untrusted}; {ANY_CERTIFICATE}") from None
    if answered is not None and answered.is_reset:
        return answered
    unsure = answered is None or answered.status in {None, BAD_REQUEST}
    if own and unsure and (spoken := _spoken_instead(front, request, testbed)):
        raise front.died(
            f"speaks {spoken} on its port, and not {front.address.protocol} as load.protocol "
            f'asks for: give load.protocol = "{spoken}", or have it speak that'
        )
    if answered is None:
        late = f"has not answered {where} in time"
        if why := why_silent(front.address, request, testbed.client_entry()):
            late = f"{late}: {why}"
        elif front.role.service.runs_already:
            late = f"doesn't answer {where}: start it first, or give another port"
        raise front.died((front.elsewhere() if own else None) or late)
    if answered.unfinished:
        raise front.died(f"GET {where} doesn't end: {answered.unfinished}; {ENDLESS}")
    if answered.unread:
        raise front.died(
            f"answers {where} with what can't be read: {answered.unread}; {UNREADABLE}"
        )
    if answered.status is None:
        raise front.died(f"ends connections without a response to {where}: {CLOSED}")
    # Of a page that nobody named an error is as good as any other response.
    if own and not answered.is_right and request.is_right is not _is_no_failure:
        unready = f"answers {where} with status {answered.status}"
        raise front.died(unready if own.ready else f"{unready}: {UNREADY}")
    return answered


def _spoken_instead(front: RunningService, request: FirstRequest, testbed: Testbed) -> str | None:
    if not front.listens():
        return None
    return spoken_instead(front.address, request, testbed.client_entry())


def _is_fine(status: int, body: bytes) -> bool:  # noqa: ARG001
    return OK <= status < BAD_REQUEST


def _is_no_failure(status: int, body: bytes) -> bool:  # noqa: ARG001
    return status < SERVER_ERROR


def _never() -> bool:
    return False
