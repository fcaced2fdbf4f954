"""A benchmark on disk: ``benchmark.toml``, ``samples.jsonl`` and ``files/``.

``samples.jsonl`` holds one :class:`~agrotools.core.Sample` as JSON on each line; blank lines are skipped. File paths
are relative to the folder. :mod:`agrotools.benchmarks.validate` lists all that is wrong with a folder; loading stops at
the first fault.
"""

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import orjson
from pydantic import ValidationError

from agrotools.core import BenchmarkError, Sample, SampleFile, first_fault
from agrotools.core.files import sha256_of_file
from agrotools.formats.benchmark import Benchmark, BenchmarkHeader, Clusters, ContentDigest, LazySamples, SampleLines

HEADER_FILE, SAMPLES_FILE, FILES_FOLDER = "benchmark.toml", "samples.jsonl", "files"
CROISSANT_FILE = "croissant.json"
CARD_FILE, CARD_FOLDER = "README.md", "card"
QUALITY_FILE = "quality.jsonl"


def load_folder(root: str | Path) -> Benchmark:
    """The benchmark in folder ``root``, every line checked, every file hashed and compared with the recorded hash.

    The samples are parsed again when they are asked for: only where they lie is kept.

    Raises:
        BenchmarkError: not a benchmark folder, a line that is no sample, or a file that is missing, altered or outside.
    """
    folder = Path(root).expanduser().resolve()
    header = read_header(folder)
    if not (folder / SAMPLES_FILE).is_file():
        raise _broken(folder, f"it has no {SAMPLES_FILE}")
    try:
        lines = SampleLines(folder / SAMPLES_FILE)
    except OSError as error:
        raise _broken(folder, f"{SAMPLES_FILE} cannot be read: {error.strerror}") from error
    hashes: dict[Path, str] = {}
    seen: set[str] = set()
    clusters = Clusters()
    digest = ContentDigest(header)
    for number, offset, line in _lines(lines.path):
        try:
            sample = Sample.model_validate_json(line)
        except ValidationError as error:
            raise _broken(folder, f"{SAMPLES_FILE}, line {number}: {first_fault(error)}") from error
        if sample.id in seen:
            raise _broken(folder, f"{SAMPLES_FILE}, line {number}: id {sample.id!r} is there twice")
        seen.add(sample.id)
        for file in sample.files:
            actual = _checked_hash(folder, sample, file, hashes)
            if file.sha256 is None:
                lines.hashes[file.path] = actual
        sample = lines.with_hashes(sample)
        lines.add(sample, offset, line)
        clusters.add(sample.files)
        digest.add(sample)
    if not seen:
        raise _broken(folder, f"{SAMPLES_FILE} holds no sample")
    content_hash = digest.hexdigest(lambda: map(lines.parse, sorted(range(len(lines.ids)), key=lines.ids.__getitem__)))
    lines.clusters = clusters.firsts()
    return Benchmark(header, folder, LazySamples(lines.facts, lines.parse), content_hash)


def read_header(root: Path) -> BenchmarkHeader:
    """The header of the benchmark in ``root``.

    Raises:
        BenchmarkError: no such folder or file, broken TOML, or missing and unknown fields.
    """
    path = root / HEADER_FILE
    if not path.is_file():
        raise BenchmarkError(
            f"{root} is not a benchmark folder: it has no {HEADER_FILE}",
            hint="give the folder that `agrotools build` wrote, or the name of a benchmark",
        )
    try:
        return BenchmarkHeader.model_validate_json(orjson.dumps(tomllib.loads(path.read_text("utf-8"))))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, orjson.JSONEncodeError, RecursionError) as error:
        raise _broken(root, f"{HEADER_FILE}: {error}") from error
    except ValidationError as error:
        raise _broken(root, f"{HEADER_FILE}: {first_fault(error)}") from error


def header_toml(header: BenchmarkHeader) -> str:
    """The header as TOML."""
    import tomli_w

    return tomli_w.dumps(header.model_dump(mode="json", exclude_none=True))


def write_samples(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Write ``benchmark.toml`` and ``samples.jsonl`` into ``folder``."""
    (folder / HEADER_FILE).write_text(header_toml(header), encoding="utf-8")
    lines = [
        sample.model_dump_json(by_alias=True, exclude_none=True, exclude_defaults=False, exclude={"cluster"})
        for sample in samples
    ]
    (folder / SAMPLES_FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def resolve_file(root: Path, path: str) -> Path:
    """The real path of a file of the benchmark in ``root`` (itself resolved).

    Raises:
        BenchmarkError: absolute, with ``..``, a link that leads out of the folder, missing, or no regular file.
    """
    relative = PurePosixPath(path)
    if relative.is_absolute() or ".." in relative.parts or "\\" in path or "\0" in path:
        raise BenchmarkError(f"{path!r} leads out of the folder", hint="paths are relative to the benchmark folder")
    try:
        real = (root / relative).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise BenchmarkError(f"there is no file {path!r}", hint=f"expected at {root / relative}") from error
    if not real.is_relative_to(root):
        raise BenchmarkError(f"{path!r} is a link that leads out of the folder", hint="copy the file into the folder")
    if not real.is_file():
        raise BenchmarkError(f"{path!r} is not a regular file", hint="name a file, not a folder or device")
    return real


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Number (from 1), offset and content of each non-blank line."""
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, offset, line
            offset += len(line)


def _checked_hash(root: Path, sample: Sample, file: SampleFile, hashes: dict[Path, str]) -> str:
    try:
        real = resolve_file(root, file.path)
    except BenchmarkError as error:
        raise _broken(root, f"sample {sample.id}: {error.message}") from error
    actual = hashes.get(real) or hashes.setdefault(real, sha256_of_file(real))
    if file.sha256 is not None and file.sha256 != actual:
        raise _broken(root, f"sample {sample.id}: file {file.path} is not the one that was recorded (sha256 differs)")
    return actual


def _broken(root: Path, message: str) -> BenchmarkError:
    return BenchmarkError(f"benchmark {root.name}: {message}", hint=f"`agrotools validate {root}` lists all faults")
