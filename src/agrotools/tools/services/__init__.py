"""Services on the network that tools use through the process that started their worker.

Workers have no keys. A tool whose back-end is such a service states a
:class:`~agrotools.tools.services.requests.ServiceRequest`; the parent process, which alone has keys, sends it and runs
the call again with the reply, as it does for the questions of the back-end ``vlm``.
"""

SERPER = "serper"
SEARXNG = "searxng"
IMAGES = "openai-images:"
"""With the name of the image model behind it."""
SANDBOX = "sandbox"
"""Not on the network, but asked for in the same way: the sandbox for code is started by the process that started the
worker, so that a worker leaves no processes behind."""


def is_service_backend(backend: str) -> bool:
    """True if a back-end is a service that the parent process calls."""
    return backend in (SERPER, SEARXNG, SANDBOX) or backend.startswith(IMAGES)
