"""Local web page for reviewing the samples of a benchmark; every decision is one line of a journal."""

from importlib.util import find_spec

from agrotools.core import UsageError
from agrotools.core.texts import install_command


def missing_package() -> str | None:
    """Return the first package of the extra ``review`` that is not installed, or None."""
    return next((name for name in ("starlette", "uvicorn") if find_spec(name) is None), None)


def require_extra() -> None:
    """Raise UsageError if a package of the extra ``review`` is not installed."""
    if missing := missing_package():
        raise UsageError(
            f"the review page needs {missing}, which is not installed",
            hint=install_command("review"),
        )
