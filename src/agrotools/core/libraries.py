"""Libraries that read and draw pictures. The extra ``tools`` installs them; a plain installation does without."""

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from agrotools.core.errors import UsageError
from agrotools.core.texts import install_command

TOOL_LIBRARIES = {
    "cv2": "OpenCV",
    "rasterio": "rasterio",
    "skimage": "scikit-image",
    "matplotlib": "matplotlib",
}
"""Modules that the extra ``tools`` installs, with the names that people know them by."""
READERS = ("cv2", "rasterio", "skimage")
"""Modules that tools on pictures and rasters need."""
DRAWING = ("matplotlib",)
"""Modules that tools that draw figures need."""


class MissingLibraryError(UsageError):
    """Something needs libraries of the extra ``tools``, which is not installed. The hint is the command for it."""


def is_installed(module: str) -> bool:
    """Return True if a module can be imported; it is not imported for this."""
    try:
        return find_spec(module) is not None
    except ValueError:  # a module that somebody put in place of it has no specification
        return False


def require_libraries(what: str, modules: Iterable[str] = TOOL_LIBRARIES) -> None:
    """Refuse what cannot work without ``modules``.

    Args:
        what: what needs them, as the subject of a message.
        modules: keys of :data:`TOOL_LIBRARIES`, or other modules.

    Raises:
        MissingLibraryError: not all of them are installed.
    """
    if absent := [module for module in modules if not is_installed(module)]:
        raise missing_libraries(what, absent)


def missing_libraries(what: str, modules: Iterable[str]) -> MissingLibraryError:
    """Return the error of ``what`` needs ``modules``, which are not installed."""
    names = [TOOL_LIBRARIES.get(module, module) for module in modules]
    *others, last = names
    listed = f"{', '.join(others)} and {last}" if others else last
    are = "are" if others else "is"
    return MissingLibraryError(
        f"{what} needs {listed}, which {are} not installed", hint=install_command("tools")
    )


def library_of(error: BaseException) -> str | None:
    """Return the module of the extra ``tools`` whose absence is the error; None for any other error."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    module = str(error.name).partition(".")[0]
    return module if module in TOOL_LIBRARIES else None


def public_name(package: str, name: str, module: str) -> Any:
    """Return a public name of a package from the module that defines it, imported now.

    Raises:
        UsageError: a library is missing; names the command that installs it.
    """
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if missing := library_of(error):
            raise missing_libraries(f"{package}.{name}", [missing]) from error
        raise
