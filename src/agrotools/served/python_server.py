"""Process of a tool server that is an object in a Python module: ``python -m agrotools.served.python_server``.

Arguments: module, name of the object (empty: the only server in the module), and the file or folder of the module's
top package, whose parent is searched for it.
"""

import importlib
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    module, name, code = sys.argv[1:]
    sys.path.insert(0, str(Path(code).parent))
    find_server(importlib.import_module(module), name).run()


def find_server(module: Any, name: str) -> Any:
    """Return the server object of a module; SystemExit, with the names of those that are there, if it is not clear."""
    if name:
        server = getattr(module, name, None)
        if not _is_server(server):
            raise SystemExit(f"{module.__name__} has no server {name!r}")
        return server
    found = {key: value for key, value in vars(module).items() if _is_server(value)}
    if len({id(server) for server in found.values()}) != 1:
        names = ", ".join(found) or "none"
        raise SystemExit(f"name the server, {module.__name__}:SERVER; servers there: {names}")
    return next(iter(found.values()))


def _is_server(value: Any) -> bool:
    """True for an object of MCPServer or FastMCP: it runs, and has a decorator for tools."""
    return (
        not isinstance(value, type)
        and callable(getattr(value, "run", None))
        and hasattr(value, "tool")
    )


if __name__ == "__main__":
    main()
