"""The services themselves, asked from where keys and network are: never from a worker."""

from typing import Any

from agrotools.core import UsageError
from agrotools.tools.outside import IMAGES, SANDBOX, SEARXNG, SERPER
from agrotools.tools.outside.request import Request


def check_service(backend: str) -> None:
    """See that what a service needs is there before anything is asked.

    Raises:
        UsageError: no key or address, or one that cannot be.
    """
    from agrotools.tools.outside.images import images_settings
    from agrotools.tools.outside.search import search_settings

    if backend in (SERPER, SEARXNG):
        search_settings(backend)
    elif backend.startswith(IMAGES):
        images_settings()
    elif backend == SANDBOX:
        return  # whether there is one is said by the first call that needs it
    else:
        raise UsageError(f"{backend!r} is no service on the network")


async def answer(request: Request) -> dict[str, Any]:
    """The reply of the service that a request is for, as JSON (pictures in base64).

    Raises:
        ToolError: what the request or the service's state is to blame for.
        InfrastructureError: no reply can be had.
        UsageError: no key or address, or one that the service refuses.
    """
    if request.service in (SERPER, SEARXNG):
        from agrotools.tools.outside.search import search

        return await search(request.service, request.body["query"], request.body["k"])
    if request.service == SANDBOX:
        from agrotools.tools.general.sandboxed import answer_sandbox

        return await answer_sandbox(request.body)
    if request.service.startswith(IMAGES):
        from agrotools.tools.outside.images import draw

        return await draw(request.service.removeprefix(IMAGES), request.body["prompt"], request.pictures)
    raise UsageError(f"{request.service!r} is no service on the network")
