"""The list of benchmarks, their files at public addresses, and records of what ``agrotools benchmarks get`` obtained.

Below the data root, ``.agrotools/NAME.json`` records the files of each benchmark and their terms, and ``LICENCES.md``
lists the terms of all of them.
"""

import operator
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple, cast
from urllib.parse import quote, urlsplit

from pydantic import Field, ValidationError

from agrotools.core import (
    BENCHMARKS,
    AgrotoolsError,
    BenchmarkError,
    FrozenModel,
    UsageError,
    imported,
)
from agrotools.core.files import write_whole
from agrotools.core.installed import benchmark_id
from agrotools.core.progress import Progress, no_progress
from agrotools.core.texts import count_text
from agrotools.formats.benchmark import SourceNote
from agrotools.loading.benchmarks import RECORDS, data_folder
from agrotools.loading.contract import BenchmarkPlugin, Download
from agrotools.loading.downloads import (
    Downloader,
    Item,
    MissingFile,
    Patience,
    failure_lines,
    repository_urls,
)
from agrotools.packages import package_tables

LICENCES_FILE = "LICENCES.md"
_TERMS = (
    "# Terms of the downloaded files\n\n| Benchmark | Data | Terms, as stated | From | Cite |\n"
    "| --- | --- | --- | --- | --- |\n"
)


@dataclass(frozen=True)
class Request:
    """Order of a benchmark's files: the data root, the mirror, and callbacks for progress and messages.

    ``quick``: only the files of the quick part.
    """

    root: Path
    mirror: str = ""
    quick: bool = False
    progress: Progress = no_progress
    say: Callable[[str], None] = lambda _: None
    patience: Patience = field(default_factory=Patience)


class Obtained(NamedTuple):
    """Files of a benchmark that are there, their terms, files that could not be obtained, and remarks."""

    files: Sequence[Path]
    sources: Sequence[SourceNote]
    failures: Sequence[MissingFile]
    notes: Sequence[str] = ()


def lacking_lines(obtained: Obtained, again: str) -> list[str]:
    """Return what is missing of a download, and how to go on with the command ``again``; empty if it is complete."""
    if not obtained.failures:
        return []
    missing = count_text(len(obtained.failures), "file")
    return [
        *failure_lines(obtained.failures),
        f"incomplete: {missing} missing; try again: {again}",
    ]


class DownloadRecord(FrozenModel):
    """Record of a download: its files (path below the data root, bytes), terms and date.

    ``quick``: it is the quick part, of which nothing is missing if ``complete``.
    """

    name: str
    complete: bool
    quick: Annotated[bool, Field(exclude_if=operator.not_)] = False
    date: str
    files: dict[str, int]
    sources: tuple[SourceNote, ...]


class ListedBenchmark(NamedTuple):
    """Row of ``agrotools benchmarks list``.

    ``state``: "complete", "quick part" or "incomplete" after a download, else "found", "not found", "not downloaded" or
    "not searched". ``where``: the folder or file, or why nothing was found. ``size_mb``: size of the download, None if
    it is not known. ``there_mb``: size of the files of a download that are there, None without a download.
    """

    name: str
    about: str
    needs: str
    state: str
    where: str
    licence: str
    address: str
    size_mb: float | None
    there_mb: float | None = None
    scope: str = ""
    """What a score says, what it does not, and which task types are not asked; empty if the plug-in does not tell."""


def list_benchmarks(data_root: Path | None = None) -> list[ListedBenchmark]:
    """Return all benchmarks that are known by name, with what is below ``data_root`` (default: the downloads)."""
    return [listed(plugin, data_root) for plugin in (*BENCHMARKS.loaded(), *pictures().values())]


def pictures() -> dict[str, BenchmarkPlugin]:
    """Return the collections of pictures that are no benchmark, by name: tools learn from them."""
    return {
        name: imported(target)
        for table in package_tables()
        for name, target in table.pictures.items()
    }


def listed(plugin: BenchmarkPlugin, data_root: Path | None = None) -> ListedBenchmark:
    """Return the row of a benchmark, with what is below ``data_root`` (default: the downloads)."""
    root = data_root.expanduser() if data_root else data_folder()
    download, record = plugin.files.download, _read_record(root, plugin.name)
    state, where = "not downloaded" if download else "not searched", ""
    size_mb = download.size_mb if download else None
    there_mb: float | None = None
    if record:
        present = [size for path, size in record.files.items() if _has_size(root / path, size)]
        where, there_mb = str(root), sum(present) / 1e6
        if not record.complete or len(present) < len(record.files):
            state = "incomplete"
        elif record.quick:
            state = "quick part"
        else:
            state = "complete"
            size_mb = there_mb if size_mb is None else size_mb
    elif plugin.files.find and (data_root or plugin.files.needs == "nothing"):
        try:
            where = str(plugin.files.find(data_root))
            state = "found"
        except AgrotoolsError as error:
            where = error.message
            state = "not found"
    place = (download.licence, download.address) if download else ("", "")
    about = plugin.about or "of an installed plug-in"
    return ListedBenchmark(
        plugin.name,
        about,
        plugin.files.needs,
        state,
        where,
        *place,
        size_mb,
        there_mb,
        plugin.scope,
    )


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def obtain(name: str, request: Request) -> Obtained:
    """Download the files of the benchmark ``name`` below ``request.root`` and record what was obtained.

    Raises:
        UsageError: there is no such benchmark, nothing to download for it, or no quick part of it.
        BenchmarkError: what lies at the address is not the benchmark.
        InfrastructureError: no server could be reached, or the disk is too small.
    """
    name = benchmark_id(name)
    plugin: BenchmarkPlugin = pictures().get(name) or BENCHMARKS.get(name)
    if (download := plugin.files.download) is None:
        known = ", ".join(each.name for each in BENCHMARKS.loaded() if each.files.download)
        raise UsageError(
            f"{name} needs no download or has no public address", hint=f"these have one: {known}"
        )
    if request.quick and download.quick_mb is None:
        parts = ", ".join(_with_quick_part())
        raise UsageError(
            f"the files of {name} have no quick part", hint=f"leave out --quick; it is for {parts}"
        )
    Downloader(request.root, request.mirror)  # refuses a wrong mirror before anything is written
    request.root.mkdir(parents=True, exist_ok=True)
    earlier = _read_record(request.root, name)
    if earlier is None:
        _write_record(request.root, name, Obtained([], [], []), complete=False)
    get = imported(download.target) if download.target else partial(_download, name, download)
    obtained: Obtained = get(request)
    has_whole = earlier is not None and earlier.complete and not earlier.quick
    if not (request.quick and has_whole):  # the quick part does not replace the record of the whole
        complete = not obtained.failures
        _write_record(request.root, name, obtained, complete=complete, quick=request.quick)
    if not obtained.failures and plugin.files.find:
        plugin.files.find(request.root)
    return obtained


def _with_quick_part() -> list[str]:
    """Return the names of the benchmarks whose quick part can be downloaded alone."""
    downloads = {each.name: each.files.download for each in BENCHMARKS.loaded()}
    return [name for name, each in downloads.items() if each and each.quick_mb is not None]


def _download(name: str, download: Download, request: Request) -> Obtained:
    folder = request.root / download.into
    downloader = Downloader(folder, request.mirror, request.patience)
    items = items_at(download.address, downloader)
    known = sum(item.size or 0 for item in items)
    size = f", {known / 1e6:,.0f} MB" if known else ""
    request.say(f"{count_text(len(items), 'file')}{size}, from {download.address}")
    failures = downloader.fetch(items, request.progress)
    for failure in failures:
        with suppress(OSError):  # another file is in it
            (folder / failure.path).parent.rmdir()
    paths = [folder / item.path for item in items if (folder / item.path).is_file()]
    for archive in [path for path in paths if path.suffix.lower() == ".zip"]:
        paths += unpack(archive, request.progress)
    note = SourceNote(name=name, licence=download.licence, url=download.address)
    return Obtained(paths, [note], failures)


def items_at(address: str, downloader: Downloader) -> list[Item]:
    """Return the files at the address of a :class:`~agrotools.plugin.Download`.

    Raises:
        BenchmarkError: the address has no files, or its list is not of the known form.
        InfrastructureError: the list cannot be read.
    """
    host, parts = urlsplit(address).netloc, urlsplit(address).path.strip("/").split("/")
    try:
        if host == "huggingface.co" and parts[0] == "datasets":
            items = _huggingface_items("/".join(parts[1:3]), downloader)
        elif host == "github.com" and len(parts) > 4 and parts[2] == "tree":
            items = _github_items("/".join(parts[:2]), parts[3], "/".join(parts[4:]), downloader)
        else:
            items = [Item(PurePosixPath(parts[-1]).name, (address,))]
    except (KeyError, TypeError, AttributeError) as error:
        raise BenchmarkError(
            f"the list of files of {address} is not of the known form ({error!r})"
        ) from error
    unsafe = [item.path for item in items if _is_unsafe(item.path)]
    if unsafe or not items:
        fault = f"a file that leads out of the folder: {unsafe[0]}" if unsafe else "no files"
        raise BenchmarkError(f"{address} has {fault}")
    return items


def _huggingface_items(repo: str, downloader: Downloader) -> list[Item]:
    page: str | None = f"https://huggingface.co/api/datasets/{repo}/tree/main?recursive=true"
    items: list[Item] = []
    while page:
        entries, page = downloader.read_json(page)
        for entry in cast(list[dict[str, Any]], entries):
            if entry["type"] == "file":
                url = f"https://huggingface.co/datasets/{repo}/resolve/main/{quote(entry['path'])}"
                large = entry.get("lfs")
                hashes = {"sha256": large["oid"]} if large else {"git_sha1": entry["oid"]}
                items.append(Item(entry["path"], (url,), size=(large or entry)["size"], **hashes))
    return items


def _github_items(repo: str, ref: str, folder: str, downloader: Downloader) -> list[Item]:
    """Return the files of a folder of a repository (or one file) without the folder, and the repository's licence."""
    tree, _ = downloader.read_json(
        f"https://api.github.com/repos/{repo}/git/trees/{ref}?recursive=1"
    )
    items: list[Item] = []
    for entry in cast(dict[str, Any], tree)["tree"]:
        path = entry["path"]
        if path == folder or path.startswith(f"{folder}/"):
            place = path.removeprefix(f"{folder}/") if path != folder else PurePosixPath(path).name
        elif "/" not in path and path.upper().startswith("LICEN"):
            place = path
        else:
            continue
        if entry["type"] == "blob":
            urls = repository_urls(f"{repo}/{ref}/{quote(path)}")
            items.append(Item(place, urls, git_sha1=entry["sha"], size=entry.get("size")))
    return items


def _is_unsafe(path: str) -> bool:
    place = PurePosixPath(path)
    return (
        not place.name or place.is_absolute() or ".." in place.parts or "\\" in path or "\0" in path
    )


def unpack(archive: Path, progress: Progress = no_progress) -> list[Path]:
    """Unpack an archive beside itself; BenchmarkError if it is damaged or a name in it leads out of the folder."""
    paths: list[Path] = []
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [
                each
                for each in opened.infolist()
                if not each.is_dir() and "__MACOSX" not in each.filename
            ]
            for number, member in enumerate(members, start=1):
                if _is_unsafe(member.filename):
                    raise BenchmarkError(f"{archive}: {member.filename!r} leads out of the folder")
                path = archive.parent / member.filename
                if not _has_size(path, member.file_size):
                    opened.extract(member, archive.parent)
                paths.append(path)
                progress(f"unpacking {archive.name}", number, len(members))
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        fault = f"{archive} is not a complete archive: {error}"
        raise BenchmarkError(fault, hint=f"delete {archive} and repeat") from error
    return paths


def _read_record(root: Path, name: str) -> DownloadRecord | None:
    try:
        return DownloadRecord.model_validate_json((root / RECORDS / f"{name}.json").read_bytes())
    except (OSError, ValidationError):
        return None


def _write_record(
    root: Path, name: str, obtained: Obtained, *, complete: bool, quick: bool = False
) -> None:
    sizes = {path.relative_to(root).as_posix(): path.stat().st_size for path in obtained.files}
    date, sources = time.strftime("%Y-%m-%d"), tuple(obtained.sources)
    record = DownloadRecord(
        name=name, complete=complete, quick=quick, date=date, files=sizes, sources=sources
    )
    (root / RECORDS).mkdir(exist_ok=True)
    write_whole(
        root / RECORDS / f"{name}.json", record.model_dump_json(indent=1).encode(), synced=False
    )
    records = filter(
        None, (_read_record(root, path.stem) for path in sorted((root / RECORDS).glob("*.json")))
    )
    rows = [
        f"| {each.name} | {note.name} | {note.licence} | {note.url or ''} | {note.citation or ''} |\n"
        for each in records
        for note in each.sources
    ]
    write_whole(root / LICENCES_FILE, "".join((_TERMS, *rows)).encode(), synced=False)
