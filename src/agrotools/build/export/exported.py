"""What an exported folder says of itself: ``agrotools-export.toml``, with the header of the benchmark it was made of.

Its name differs from that of a benchmark's header, so that an export is neither taken for a benchmark folder nor
written over one.
"""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Literal

import orjson
from pydantic import ValidationError

from agrotools.build.export.card import CARD_FILE, CARD_FOLDER
from agrotools.core import BenchmarkError, FrozenModel
from agrotools.core.benchmark_header import BenchmarkHeader
from agrotools.formats.folder import CROISSANT_FILE, HEADER_FILE, SAMPLES_FILE
from agrotools.formats.replacement import replace_folder

EXPORT_FILE = "agrotools-export.toml"
Format = Literal["hf", "gta"]


class Exported(FrozenModel):
    """``form`` is the version of the layout."""

    format: Format
    form: Literal[1] = 1
    header: BenchmarkHeader


@contextmanager
def replacing_export(target: Path, format: Format, header: BenchmarkHeader) -> Iterator[Path]:
    """Replace an export of this format and write its note: :func:`~agrotools.formats.replacement.replace_folder`.

    Raises:
        BenchmarkError: ``target`` holds something else than such an export, or cannot be written.
    """
    import tomli_w

    what = f"an export of agrotools ({format})"
    if (target / EXPORT_FILE).is_file() and read_exported(target).format != format:
        raise BenchmarkError(f"{target} holds an export of another format", hint="choose an empty or new folder")
    with replace_folder(target, EXPORT_FILE, what) as made:
        note = Exported(format=format, header=header).model_dump(mode="json", exclude_none=True)
        (made / EXPORT_FILE).write_text(tomli_w.dumps(note), encoding="utf-8")
        yield made


def read_exported(folder: Path) -> Exported:
    """What the export in ``folder`` says of itself.

    Raises:
        BenchmarkError: it is no export of agrotools, or what it says cannot be read.
    """
    path = folder / EXPORT_FILE
    if not path.is_file():
        raise BenchmarkError(f"{folder} is no export of agrotools: it has no {EXPORT_FILE}")
    try:
        return Exported.model_validate_json(orjson.dumps(tomllib.loads(path.read_text(encoding="utf-8"))))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, orjson.JSONEncodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}", hint="export the benchmark again") from error
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, detail["loc"]))
        raise BenchmarkError(f"{path}: {where}: {detail['msg']}", hint="export the benchmark again") from error


def safe_path(path: str) -> PurePosixPath:
    """``path`` as a path that stays inside the folder it is relative to.

    Raises:
        BenchmarkError: empty, absolute, or with ``..``, a backslash or a null.
    """
    relative = PurePosixPath(path)
    if not relative.name or relative.is_absolute() or ".." in relative.parts or "\\" in path or "\0" in path:
        raise BenchmarkError(f"{path!r} leads out of the folder", hint="paths are relative to the folder")
    return relative


def stored_path(path: str) -> PurePosixPath:
    """As :func:`safe_path`, of a file in a benchmark folder.

    Raises:
        BenchmarkError: also where it would take the place of what the folder itself consists of.
    """
    relative = safe_path(path)
    own = (HEADER_FILE, SAMPLES_FILE, CARD_FILE, CARD_FOLDER, CROISSANT_FILE)
    if relative.parts[0] in own:
        raise BenchmarkError(f"{path!r} is no place for a file of a sample", hint="files lie in files/")
    return relative
