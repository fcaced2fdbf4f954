"""Loader of the embedded benchmark, which is drawn on first use into the user's cache.

The folder's name contains the benchmark version and a fingerprint of the tool versions, because the recorded
observations depend on them; they do not depend on heads trained on this machine. A manifest holds the hash of every
file, and the whole folder is drawn again if a file is missing or altered. The folder gets its final name only when it
is complete, and a lock lets one process draw while others wait for it.
"""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import orjson
from filelock import FileLock

from agrotools.benchmarks.loading import Loading
from agrotools.core import BenchmarkError
from agrotools.core.files import cache_dir, sha256_of_file
from agrotools.formats.benchmark import Benchmark, load_folder

VERSION = "6"
SAMPLES = 78
QUICK = 24
"""Number of samples in the quick part."""
_MANIFEST = "manifest.json"


def load_embedded(loading: Loading) -> Benchmark:
    """Load the embedded benchmark. The first call takes about a minute, later ones a fraction of a second.

    Raises:
        UsageError: options were given; this benchmark has none.
        BenchmarkError: the cache folder cannot be written.
    """
    target = embedded_folder()
    parent = target.parent
    if not is_intact(target):
        from agrotools.build.sources.drawn.benchmark import drawn_questions, embedded_counts, write_scenes

        try:
            parent.mkdir(parents=True, exist_ok=True)
            with FileLock(parent / f".{target.name}.lock"):
                if not is_intact(target):
                    # Drawn scenes are kept until the benchmark is complete, so that a stopped first run can be resumed.
                    work, progress = parent / f".{target.name}-scenes", loading.progress

                    def write(folder: Path) -> None:
                        questions = drawn_questions(work, SAMPLES, progress=progress, recorded=embedded_counts())
                        write_scenes(folder, questions, "embedded", version=VERSION, quick=QUICK, progress=progress)

                    _draw(target, write)
                    shutil.rmtree(work, ignore_errors=True)
        except OSError as error:
            raise BenchmarkError(
                f"the embedded benchmark cannot be written to {parent}: {error.strerror or error}",
                hint="set AGROTOOLS_CACHE to a folder that can be written",
            ) from error
    return load_folder(target)


def embedded_folder() -> Path:
    """Return the folder of the embedded benchmark, which may not have been drawn yet."""
    return cache_dir("benchmarks") / f"embedded-{VERSION}-{_tools_fingerprint()}"


def is_intact(folder: Path) -> bool:
    """Return True if ``folder`` holds exactly the files of its manifest, unaltered."""
    try:
        recorded: dict[str, str] = orjson.loads((folder / _MANIFEST).read_bytes())
        return isinstance(recorded, dict) and recorded == _hashes(folder)
    except (OSError, orjson.JSONDecodeError):
        return False


def _draw(target: Path, write: Callable[[Path], object]) -> None:
    temporary = Path(mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        write(temporary)
        (temporary / _MANIFEST).write_bytes(orjson.dumps(_hashes(temporary), option=orjson.OPT_INDENT_2))
        temporary.chmod(0o755)
        if target.exists() or target.is_symlink():
            broken = Path(mkdtemp(prefix=f".{target.name}-broken-", dir=target.parent))
            target.replace(broken / "folder")
            shutil.rmtree(broken, ignore_errors=True)
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _hashes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): sha256_of_file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != _MANIFEST
    }


def _tools_fingerprint() -> str:
    """Return ten hexadecimal digits that depend on the versions of all tools."""
    from agrotools.tools import AGROTOOLS, get_tool

    digest = hashlib.sha256()
    for name in AGROTOOLS:
        tool = get_tool(name)
        digest.update(f"{name} {tool.version}\n".encode())
    return digest.hexdigest()[:10]
