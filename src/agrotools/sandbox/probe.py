"""Which runner there is, found out by running a job that tries to get out."""

from agrotools.sandbox.result import SandboxUnavailable


def available_runners() -> tuple[str, ...]:
    """Names of the runners that held on this machine, best first. ``none`` is never among them."""
    return ()


def select_runner(name: str | None = None) -> str:
    """The runner that ``name`` (default: ``AGROTOOLS_SANDBOX``) means, or else the best that there is.

    Raises:
        SandboxUnavailable: it did not hold, or none did.
        UsageError: there is no runner of that name.
    """
    raise SandboxUnavailable(f"no sandbox can run code here ({name or 'none asked for by name'})")
