"""Packed benchmarks: the samples of a benchmark with all that was recorded, in one file of the package, without files.

A pack is JSON lines, compressed with xz. The first line holds the header, for every file that samples show what is
needed to make or fetch it, and further facts of the benchmark; each further line is a sample. The hash of a file is
that of its decoded pixels if it is drawn (``SampleFile.pixels``), because the bytes depend on the libraries that
compress them.
"""

import hashlib
import lzma
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import cast

import orjson
from pydantic import JsonValue, ValidationError

from agrotools.core import BenchmarkError, Sample, first_error
from agrotools.formats.benchmark import BenchmarkHeader
from agrotools.packages import packaged_file


class Pack:
    """An opened pack. ``files`` describes each file by its path in the benchmark, in the terms of its loader.

    ``described`` is the first line, with header, files and further facts.
    """

    def __init__(self, content: bytes) -> None:
        first, *self._lines = lzma.decompress(content).splitlines()
        self.described: Mapping[str, JsonValue] = orjson.loads(first)
        self.header = BenchmarkHeader.model_validate(self.described["header"])
        self.files = cast("Mapping[str, Mapping[str, JsonValue]]", self.described["files"])
        self.fingerprint = hashlib.sha256(content).hexdigest()[:10]

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """The samples in their order, parsed on first use."""
        return tuple(map(Sample.model_validate_json, self._lines))


def read_pack(name: str) -> Pack:
    """Read the pack of benchmark ``name`` from the package; BenchmarkError if it is missing or damaged."""
    path = packaged_file(f"{name}.jsonl.xz")
    if path is None:
        raise BenchmarkError(f"the pack of {name} is missing", hint=_REINSTALL)
    try:
        return Pack(path.read_bytes())
    except ValidationError as error:
        raise BenchmarkError(
            f"the pack of {name} is damaged: {first_error(error)}", hint=_REINSTALL
        ) from error
    except (OSError, lzma.LZMAError, ValueError, KeyError) as error:
        raise BenchmarkError(
            f"the pack of {name} cannot be read: {error}", hint=_REINSTALL
        ) from error


_REINSTALL = "install agrotools again"


def write_pack(
    path: Path,
    header: BenchmarkHeader,
    described: Mapping[str, Mapping[str, JsonValue]],
    samples: Iterable[Sample],
    **facts: JsonValue,
) -> None:
    """Write a pack with further ``facts``."""
    first = {
        "header": header.model_dump(mode="json", exclude_none=True),
        "files": described,
        **facts,
    }
    lines = [sample.model_dump_json(by_alias=True, exclude_none=True) for sample in samples]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = b"\n".join([orjson.dumps(first), *(line.encode() for line in lines)])
    path.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
