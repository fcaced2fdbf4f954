"""Starting the server: on this machine only, on a port of its own, until it is stopped."""

import hashlib
import socket
from collections.abc import Callable
from pathlib import Path

from agrotools.build.review.journal import ReviewJournal
from agrotools.build.review.material import Material
from agrotools.core import UsageError

ADDRESS = "127.0.0.1"
_FIRST_PORT, _PORTS = 20_000, 12_000
_TRIES = 20


def require_extra() -> None:
    """See that the packages of the extra ``review`` are there.

    Raises:
        UsageError: they are not.
    """
    try:
        import starlette
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"the review page needs {error.name}, which is not installed", hint="pip install 'agrotools[review]'"
        ) from error
    del starlette


def bound_socket(folder: Path, port: int | None) -> socket.socket:
    """A listening place on ``127.0.0.1``.

    Without ``port`` it is the same one for the same folder whenever that is free: what a browser keeps of an
    unfinished review belongs to an address with its port.

    Raises:
        UsageError: ``port`` cannot be had.
    """
    if port is not None:
        try:
            return _bound(port)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"port {port} cannot be used: {reason}", hint="choose another --port, or leave it out"
            ) from error
    start = int.from_bytes(hashlib.sha256(str(folder.resolve()).encode()).digest()[:4], "big")
    for offset in range(_TRIES):
        try:
            return _bound(_FIRST_PORT + (start + offset) % _PORTS)
        except OSError:
            continue
    return _bound(0)


def _bound(port: int) -> socket.socket:
    # With the protocol named, asyncio switches off Nagle's delay, which costs 40 ms an answer.
    place = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # After a restart, connections of the last process linger; two that listen at once are still refused.
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind((ADDRESS, port))
        place.listen(128)
    except BaseException:
        place.close()
        raise
    return place


def serve_review(
    material: Material,
    journal: ReviewJournal,
    place: socket.socket,
    *,
    reviewer: str = "",
    started: Callable[[str], None],
) -> None:
    """Serve the page on ``place`` until interrupted. ``started`` gets the address with its one-time token.

    Raises:
        BenchmarkError: decisions could not be stored.
    """
    import uvicorn

    from agrotools.build.review.app import Review
    from agrotools.build.review.security import Doorkeeper

    journal.open_for_writing()
    port = place.getsockname()[1]
    doorkeeper = Doorkeeper(port)
    application = Review(material, journal, doorkeeper, reviewer).application()
    config = uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    started(f"http://{ADDRESS}:{port}/?token={doorkeeper.token}")
    try:
        uvicorn.Server(config).run(sockets=[place])
    except KeyboardInterrupt:
        return
