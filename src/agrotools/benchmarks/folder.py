"""A benchmark on disk: ``benchmark.toml``, ``samples.jsonl`` and ``files/``.

``samples.jsonl`` holds one :class:`~agrotools.core.Sample` as JSON on each line; blank lines are skipped. File paths
are relative to the folder. :mod:`agrotools.benchmarks.validate` lists all that is wrong with a folder; loading stops at
the first fault.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import orjson
from pydantic import ValidationError

from agrotools.benchmarks.benchmark import Benchmark, content_hash_of, with_clusters
from agrotools.construct.export import HEADER_FILE, SAMPLES_FILE, sha256_of_file
from agrotools.core import BenchmarkError, Sample, SampleFile
from agrotools.core.benchmark_header import BenchmarkHeader


def load_folder(root: str | Path) -> Benchmark:
    """The benchmark in folder ``root``, every file hashed and its hash compared with the recorded one.

    Raises:
        BenchmarkError: not a benchmark folder, a line that is no sample, or a file that is missing, altered or outside.
    """
    root = Path(root).expanduser().resolve()
    header = read_header(root)
    hashes: dict[Path, str] = {}
    samples: list[Sample] = []
    seen: set[str] = set()
    for number, sample in _read_samples(root):
        if sample.id in seen:
            raise _broken(root, f"{SAMPLES_FILE}, line {number}: id {sample.id!r} is there twice")
        seen.add(sample.id)
        files = tuple(_hashed(root, sample, file, hashes) for file in sample.files)
        samples.append(sample.model_copy(update={"files": files}))
    if not samples:
        raise _broken(root, f"{SAMPLES_FILE} holds no sample")
    return Benchmark(header, root, with_clusters(samples), content_hash_of(header, samples))


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
        raise _broken(root, f"{HEADER_FILE}: {_first(error)}") from error


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
        raise BenchmarkError(f"{path!r} is no regular file", hint="name a file, not a folder or device")
    return real


def _read_samples(root: Path) -> Iterable[tuple[int, Sample]]:
    path = root / SAMPLES_FILE
    if not path.is_file():
        raise _broken(root, f"it has no {SAMPLES_FILE}")
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                yield number, Sample.model_validate_json(line)
            except ValidationError as error:
                raise _broken(root, f"{SAMPLES_FILE}, line {number}: {_first(error)}") from error


def _hashed(root: Path, sample: Sample, file: SampleFile, hashes: dict[Path, str]) -> SampleFile:
    try:
        real = resolve_file(root, file.path)
    except BenchmarkError as error:
        raise _broken(root, f"sample {sample.id}: {error.message}") from error
    actual = hashes.get(real) or hashes.setdefault(real, sha256_of_file(real))
    if file.sha256 is not None and file.sha256 != actual:
        raise _broken(root, f"sample {sample.id}: file {file.path} is not the one that was recorded (sha256 differs)")
    return file.model_copy(update={"sha256": actual})


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in detail["loc"]) or "the whole"
    return f"{where}: {detail['msg']}"


def _broken(root: Path, message: str) -> BenchmarkError:
    return BenchmarkError(f"benchmark {root.name}: {message}", hint=f"`agrotools validate {root}` lists all faults")
