"""``croissant.json``, where there is one: it describes the folder as it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import orjson

from agrotools.benchmarks.checks.fault import Fault
from agrotools.core import BenchmarkError
from agrotools.core.files import sha256_of_file
from agrotools.formats.folder import CROISSANT_FILE, resolve_file

_HINT = "write it anew: agrotools export DIR --format croissant"


def check_described(root: Path, hashes: dict[Path, str]) -> Iterator[Fault]:
    """Codes: broken_croissant, stale_croissant. ``hashes`` keeps the hash of each real path."""
    path = root / CROISSANT_FILE
    if not path.is_file():
        return
    try:
        described = orjson.loads(path.read_bytes())
        files = [(str(file["contentUrl"]), str(file["sha256"])) for file in cast(Any, described)["distribution"]]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        yield _fault("broken_croissant", f"it lists no files with their hashes: {error}")
        return
    for name, sha256 in files:
        if name.startswith(("http://", "https://")):
            continue
        try:
            real = resolve_file(root, name)
            actual = hashes.get(real) or hashes.setdefault(real, sha256_of_file(real))
        except (BenchmarkError, OSError) as error:
            yield _fault("stale_croissant", f"it lists {name}: {error}")
            continue
        if actual != sha256:
            yield _fault("stale_croissant", f"{name} is not the file that it describes (sha256 differs)")


def _fault(code: str, message: str) -> Fault:
    return Fault(code=code, message=message, hint=_HINT, file=CROISSANT_FILE)
