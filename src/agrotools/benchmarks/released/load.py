"""Loader of the released AgroTools questions: JSON or parquet files of unknown form, read by a field map.

The entries are converted into a benchmark folder in the user's cache, again whenever the files or the map change. What
the map does not read is reported: fields with their number, and entries with the reason.
"""

import hashlib
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from agrotools.benchmarks.loading import Loading, data_folder, settings_of
from agrotools.benchmarks.rows import read_rows
from agrotools.core import BenchmarkError, FrozenModel
from agrotools.core.base import NoFileError
from agrotools.core.files import cache_dir, sha256_of_file
from agrotools.formats.benchmark import Benchmark, load_folder

MAP = Path(__file__).with_name("map.toml")
_GET_IT = "agrotools data get agrotools"
_CONVERTED = "entries.jsonl"
_SHOWN = 12


class ReleasedSettings(FrozenModel):
    """Options of ``agrotools eval agrotools``."""

    map: str = ""
    """Field map (TOML); default: ``agrotools-map.toml`` in the folder of the files, or the one in the package."""


def find_entries(data_root: Path | None) -> Path:
    """Return the folder of the released files below ``data_root``; NoFileError if there is none."""
    root = (data_root or data_folder()).expanduser()
    for folder in (root / "agrotools", root / "AgroTools"):
        if any(_entry_files(folder)):
            return folder.resolve()
    raise NoFileError(f"{root} has no folder agrotools with JSON or parquet files", hint=f"get them: {_GET_IT}")


def _entry_files(folder: Path) -> list[Path]:
    """Return the parquet files, or else the largest JSON file, which holds the questions."""
    there = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    parquet = [path for path in there if path.suffix == ".parquet"]
    plain = [path for path in there if path.suffix in (".json", ".jsonl") and path.name != _CONVERTED]
    return parquet or sorted(plain, key=lambda path: -path.stat().st_size)[:1]


def load_released(loading: Loading) -> Benchmark:
    """Load the questions below ``loading.data_root``.

    Raises:
        UsageError: an option is unknown, or pyarrow is needed and not installed.
        BenchmarkError: the files are missing, or no entry can be read with the map; the message lists the reasons.
    """
    from agrotools.build.export.gta_entries import read_map
    from agrotools.build.export.gta_in import import_entries

    settings = settings_of(ReleasedSettings, "agrotools", loading.options)
    target = converted_folder(loading.data_root, settings.map)
    if not (target / "benchmark.toml").is_file():
        root = find_entries(loading.data_root)
        fields = read_map(_map_path(root, settings.map))
        try:
            place = _write_entries(root) if fields.file == _CONVERTED else root / fields.data
            import_entries(place, fields, target, loading.progress)
        except BenchmarkError as error:
            error.hint = f"correct a copy of {MAP} and give it: --option map=FILE"
            raise
    benchmark = load_folder(target)
    metadata = benchmark.header.metadata
    notes = [str(metadata["note"])] if "note" in metadata else []
    if isinstance(unread := metadata.get("unread_fields"), dict):
        some = ", ".join(f"{name} ({count})" for name, count in islice(unread.items(), _SHOWN))
        more = f" and {len(unread) - _SHOWN} more" if len(unread) > _SHOWN else ""
        notes.append(f"fields that the map does not read, with their number: {some}{more}")
    header = benchmark.header.model_copy(update={"metadata": {**metadata, "notes": [*notes]}})
    return Benchmark(header, benchmark.root, benchmark.samples, benchmark.content_hash)


def _map_path(root: Path, given: str) -> Path:
    from agrotools.build.export.gta_entries import MAP_FILE

    beside = root / MAP_FILE
    return Path(given).expanduser() if given else beside if beside.is_file() else MAP


def converted_folder(data_root: Path | None, given: str = "") -> Path:
    """Return the folder in the cache for these files and this map; it may not exist yet."""
    root, digest = find_entries(data_root), hashlib.sha256()
    map_path = _map_path(root, given)
    if not map_path.is_file():
        raise NoFileError(f"there is no file {map_path}", hint="--option map=FILE gives a field map in TOML")
    for path in (map_path, *_entry_files(root)):
        digest.update(f"{path} {sha256_of_file(path)}\n".encode())
    return cache_dir("benchmarks") / f"agrotools-{digest.hexdigest()[:10]}"


def _write_entries(root: Path) -> Path:
    """Write all entries as JSON lines, with the pictures inside parquet files beside them; return the folder."""
    files = _entry_files(root)
    folder = root if files[0].suffix == ".parquet" else files[0].parent
    rows = (_plain(row, folder) for path in files for row in read_rows(path))
    (folder / _CONVERTED).write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return folder


def _plain(value: Any, root: Path) -> Any:
    """Return a value of a row as JSON: text that is JSON is parsed, pictures are written and named by their path."""
    if isinstance(value, dict):
        if set(value) == {"bytes", "path"} and value["bytes"] is not None:
            digest = hashlib.sha256(value["bytes"]).hexdigest()[:16]
            name = f"pictures/{digest}{Path(value['path'] or 'x.png').suffix or '.png'}"
            (root / "pictures").mkdir(exist_ok=True)
            (root / name).write_bytes(value["bytes"])
            return {"path": name, "display_name": Path(value["path"] or name).name}
        return {key: _plain(inner, root) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, root) for inner in value]
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            return _plain(orjson.loads(value), root)
        except orjson.JSONDecodeError:
            return value
    return value if isinstance(value, str | int | float | bool | None) else str(value)
