"""What of this machine a worker may read: the interpreter, its libraries and the packages that code may import."""

import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

WARM = ("numpy", "matplotlib", "sympy")
"""What a worker imports before it gets its code."""
_IMPORTABLE = (*WARM, "mpmath", "PIL", "scipy", "contourpy", "dateutil", "six")
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_LINKED = "LD_LIBRARY_PATH"

INSIDE = Path(__file__).parent / "inside"
"""The worker's own code."""


def interpreter() -> str:
    """The Python that this process runs on, without its virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@cache
def package_folders() -> tuple[str, ...]:
    """Folders in which importable packages lie, for ``sys.path``."""
    folders = [str(Path(folder).resolve().parent) for folder in _packages().values()]
    return tuple(dict.fromkeys(folders))


@cache
def readable() -> tuple[str, ...]:
    """Files and folders that exist, none inside of another, outer links resolved."""
    prefix = Path(sys.base_prefix).resolve()
    wanted = [*_LIBRARIES, interpreter()]
    # A prefix of the system holds much more than Python.
    wanted += [str(prefix / "lib"), str(prefix / "lib64")] if _is_system(prefix) else [str(prefix)]
    for package in _packages().values():
        parent = Path(package).resolve().parent
        wanted.append(str(parent if parent.name in _PACKAGE_FOLDERS else Path(package).resolve()))
    wanted += [entry for entry in os.environ.get(_LINKED, "").split(os.pathsep) if entry.startswith("/")]
    found = sorted({os.path.realpath(path) for path in wanted if Path(path).exists()} - {"/"})
    return tuple(path for path in found if not any(path.startswith(other + "/") for other in found))


def environment() -> dict[str, str]:
    """All the environment that a worker has."""
    variables = {
        "HOME": "/tmp",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "MPLBACKEND": "Agg",
        "SOURCE_DATE_EPOCH": "0",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    if linked := os.environ.get(_LINKED):  # without it some installations of Python do not start
        variables[_LINKED] = linked
    return variables


def _packages() -> dict[str, str]:
    """Where each importable package that is installed lies."""
    found: dict[str, str] = {}
    for name in _IMPORTABLE:
        spec = find_spec(name)
        if spec is None:
            continue
        if spec.submodule_search_locations:
            found[name] = next(iter(spec.submodule_search_locations))
        elif spec.origin:
            found[name] = spec.origin
    return found


def _is_system(prefix: Path) -> bool:
    return str(prefix) in ("/", "/usr", "/usr/local")
