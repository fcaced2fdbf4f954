"""Entries of the knowledge base: their form, and loading from TOML files: those that ship, and the user's own.

An entry is one file, ``data/kb/FOLDER/SLUG.toml``. Everything is validated strictly: an unknown key, a number written
as text or a date that is none is a fault, never silently dropped. The user's entries lie in the folders named by
``AGROTOOLS_KB`` (several parted by ``:``), or else in ``kb`` inside the user's data folder. A file that cannot be read
as an entry is a :class:`Fault` that says where and why; all others are loaded. Parsing hundreds of TOML files takes
longer than reading their compiled form, which therefore lies in the cache under the hash of all of them.
"""

import os
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import to_json

from agrotools.core import FrozenModel
from agrotools.core.files import cache_dir, write_whole

Kind = Literal["pest", "disease", "weed", "crop", "method"]
Coverage = Literal["verified", "partial", "stub"]
Section = Literal["identification", "symptoms", "causes", "life_cycle", "thresholds", "management", "reference_values"]
Passage = Literal[Section, "names"]
"""A section, or what every entry has: its names, crops and place in the system."""
ManagementType = Literal["cultural", "biological", "chemical", "monitoring", "physical"]
PathogenType = Literal[
    "fungus", "oomycete", "bacterium", "virus", "viroid", "phytoplasma", "nematode", "mite", "insect", "alga",
    "disorder", "unknown",
]  # fmt: skip
GrowthForm = Literal["grass", "broadleaf", "sedge", "shrub", "tree", "vine"]
How = Literal["page read", "cited in data set paper", "general knowledge, not verified"]

FOLDER_OF_KIND: dict[Kind, str] = {
    "pest": "pests",
    "disease": "diseases",
    "weed": "weeds",
    "crop": "crops",
    "method": "methods",
}

_NAME = Annotated[str, StringConstraints(min_length=1, max_length=120)]
_TEXT = Annotated[str, StringConstraints(min_length=3, max_length=700)]
_SHORT = Annotated[str, StringConstraints(min_length=1, max_length=300)]
_PHRASE = Annotated[str, StringConstraints(min_length=3, max_length=160)]
_NUMBER = Annotated[float, Field(allow_inf_nan=False)]
_ID = Annotated[str, StringConstraints(pattern=r"^(pest|disease|weed|crop|method)\.[a-z0-9_]{1,80}$")]
_KEY = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,40}$")]


class Names(FrozenModel):
    """Names of a thing. ``datasets``: key of a data set -> its labels, exactly as published."""

    en: _NAME
    sci: _NAME | None = None
    aliases: tuple[_NAME, ...] = Field((), max_length=60)
    zh: tuple[_NAME, ...] = Field((), max_length=30)
    datasets: dict[_KEY, tuple[_NAME, ...]] = {}

    def all(self) -> tuple[str, ...]:
        """Every name once: English, scientific, aliases, Chinese, labels of data sets."""
        labels = (label for dataset_labels in self.datasets.values() for label in dataset_labels)
        all_names = (self.en, *([self.sci] if self.sci else []), *self.aliases, *self.zh, *labels)
        return tuple(dict.fromkeys(all_names))


class Taxonomy(FrozenModel):
    order: _NAME | None = None
    family: _NAME | None = None
    eppo: Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]{5,6}$")] | None = None
    """code in the EPPO database"""
    pathogen_type: PathogenType | None = None
    growth_form: GrowthForm | None = None


class Claim(FrozenModel):
    """One or two sentences of our own, and the keys of the sources they rest on."""

    section: Section
    text: _TEXT
    sources: tuple[_KEY, ...]
    type: ManagementType | None = None
    """of a management claim"""
    value: _NUMBER | None = None
    unit: _SHORT | None = None
    condition: _SHORT | None = None
    region: _SHORT | None = None
    formula: _SHORT | None = None


class Source(FrozenModel):
    """Source of a claim. ``how`` says whether anybody read it there."""

    title: _SHORT
    publisher: _SHORT
    year: Annotated[int, Field(ge=1500, le=2100)] | None = None
    url: Annotated[str, StringConstraints(pattern=r"^https?://\S{3,400}$")] | None = None
    licence: _SHORT
    checked: date
    how: How


class Entry(FrozenModel):
    """One pest, disease, weed, crop or method."""

    id: _ID
    kind: Kind
    coverage: Coverage
    last_reviewed: date
    crops: tuple[_NAME, ...] = Field((), max_length=80)
    described_as: tuple[_PHRASE, ...] = Field((), max_length=20)
    """Short phrases in which people put what they see, as farmers and gardeners say it. They are searched, never shown,
    and need no source: they claim nothing beyond the claims and contradict none."""
    names: Names
    taxonomy: Taxonomy = Taxonomy()
    claims: tuple[Claim, ...] = Field((), max_length=80)
    sources: dict[_KEY, Source] = {}

    @property
    def slug(self) -> str:
        return self.id.partition(".")[2]

    @property
    def title(self) -> str:
        """The English name with the scientific one behind it."""
        return f"{self.names.en} ({self.names.sci})" if self.names.sci else self.names.en

    def claims_of(self, section: Section) -> tuple[Claim, ...]:
        return tuple(claim for claim in self.claims if claim.section == section)


SHIPPED = Path(__file__).parents[1] / "data" / "kb"
LONGEST_FILE = 64 * 1024
"""Bytes. What is longer is refused before it is parsed: the parser's time grows with the square of a hostile key."""
_MOST_DOTS = 60
"""In a line. A key of thousands of parts takes the parser a minute, and no sentence has so many full stops."""
MOST_FILES = 20_000


class Fault(FrozenModel):
    """One error in a file of the knowledge base."""

    file: str
    message: str
    field: str = ""
    """path to the value, such as ``claims[2].sources``"""
    line: int | None = None
    hint: str = ""

    @property
    def where(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place} {self.field}".rstrip()


@dataclass(frozen=True)
class Loaded:
    """The entries in order of id, the file of each, and what could not be loaded."""

    entries: tuple[Entry, ...]
    files: dict[str, Path]
    """id -> the file it came from"""
    faults: tuple[Fault, ...]


def user_folders() -> tuple[Path, ...]:
    """Folders of the user's own entries; new ones go into the first. They need not exist."""
    folders = [part for part in os.environ.get("AGROTOOLS_KB", "").split(os.pathsep) if part.strip()]
    if folders:
        return tuple(Path(part).expanduser().absolute() for part in folders)
    from platformdirs import user_data_path

    return (user_data_path("agrotools") / "kb",)


def kb_files() -> tuple[Path, ...]:
    """All files of the knowledge base in the order in which they are loaded: shipped ones first."""
    return tuple(path for folder in (SHIPPED, *user_folders()) for path in toml_files(folder))


def toml_files(folder: Path) -> list[Path]:
    """The TOML files in ``folder`` and its folders, sorted; none where it does not exist. Links to folders are not
    followed."""
    paths: list[Path] = []
    for here, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        paths += [Path(here, name) for name in sorted(names) if name.endswith(".toml") and not name.startswith(".")]
        if len(paths) >= MOST_FILES:
            break
    return sorted(paths)[:MOST_FILES]


def load(paths: Sequence[Path] | None = None) -> Loaded:
    """The entries in ``paths`` (default: :func:`kb_files`). A file at fault costs only itself."""
    contents: list[tuple[Path, bytes]] = []
    faults: list[Fault] = []
    for path in kb_files() if paths is None else paths:
        content = _content(path)
        if isinstance(content, Fault):
            faults.append(content)
        else:
            contents.append((path, content))
    compiled = _compiled_file(contents)
    parsed = _read_compiled(compiled, len(contents))
    if parsed is None:
        parsed = [parse(content, str(path)) for path, content in contents]
        _keep_compiled(compiled, parsed)
    entries: dict[str, Entry] = {}
    files: dict[str, Path] = {}
    for (path, _), result in zip(contents, parsed, strict=True):
        if isinstance(result, Entry):
            if result.id in entries:
                faults.append(_duplicate_id(result.id, path, files[result.id]))
            else:
                entries[result.id], files[result.id] = result, path
        else:
            # The compiled form may have been written where the same files lay elsewhere.
            faults += [fault.model_copy(update={"file": str(path)}) for fault in result]
    ordered = tuple(entries[key] for key in sorted(entries))
    return Loaded(ordered, files, tuple(faults))


def parse(content: bytes, file: str) -> Entry | list[Fault]:
    """One entry from the bytes of a TOML file, or all that is wrong with it."""
    if len(content) > LONGEST_FILE:
        return [_too_long(file)]
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return [Fault(file=file, line=line, message="this is not UTF-8 text", hint="save the file as UTF-8")]
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > _MOST_DOTS:
            return [Fault(file=file, line=number, message=f"more than {_MOST_DOTS} full stops in one line")]
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits is a ValueError too
        message = "too deeply nested" if isinstance(error, RecursionError) else str(error)
        return [Fault(file=file, line=_line_named(message, text), message=f"not valid TOML: {message}"[:400])]
    return _validated(data, text, file)


def read_entry(path: Path) -> Entry | list[Fault]:
    """The entry in one file, or all that is wrong with it."""
    content = _content(path)
    return [content] if isinstance(content, Fault) else parse(content, str(path))


def _validated(data: dict[str, Any], text: str, file: str) -> Entry | list[Fault]:
    try:
        # Through JSON, where lists are tuples and dates are text, so that one strict reading serves both forms.
        return Entry.model_validate_json(to_json(data, inf_nan_mode="constants"), strict=True)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
    except (ValueError, RecursionError) as error:
        return [Fault(file=file, message=f"cannot be read as an entry: {error}"[:400])]
    return [
        Fault(
            file=file,
            field=spell_location(fault["loc"]),
            line=line_of(text, fault["loc"]),
            message=_in_words(fault["type"], fault["msg"]),
        )
        for fault in errors[:50]
    ]


def _in_words(kind: str, message: str) -> str:
    return {"extra_forbidden": "no such key", "missing": "this is missing"}.get(kind, message)


def spell_location(location: Iterable[str | int]) -> str:
    """Path to a value, such as ``claims[2].sources``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def line_of(text: str, location: Sequence[str | int]) -> int | None:
    """The line of a value in a file of the usual form, or of the table it belongs to; None where it is not seen."""
    lines = text.splitlines()
    start, keys = 0, list(location)
    best: int | None = None
    if len(keys) > 1 and keys[0] == "claims" and isinstance(keys[1], int):
        heads = [at for at, line in enumerate(lines) if line.strip().replace(" ", "") == "[[claims]]"]
        if keys[1] >= len(heads):
            return None
        start, keys = heads[keys[1]], keys[2:]
        best = start + 1
    elif len(keys) > 1:
        for depth in range(len(keys) - 1, 0, -1):
            name = ".".join(str(key) for key in keys[:depth])
            heads = [at for at, line in enumerate(lines) if line.strip().replace(" ", "") == f"[{name}]"]
            if heads:
                start, keys = heads[0], keys[depth:]
                best = start + 1
                break
    if not keys:
        return best
    for at in range(start, len(lines)):
        line = lines[at].strip()
        if at > start and line.startswith("["):
            break
        if line.partition("=")[0].strip().strip("\"'") == str(keys[0]):
            return at + 1
    return best


def _line_named(message: str, text: str) -> int | None:
    """tomllib says where a fault lies only in its message: ``... (at line 3, column 5)``."""
    if message.endswith("(at end of document)"):
        return max(1, len(text.splitlines()))
    _, separator, rest = message.rpartition("at line ")
    number = rest.partition(",")[0]
    return int(number) if separator and number.isdigit() else None


def _content(path: Path) -> bytes | Fault:
    try:
        if not path.is_file():
            return Fault(file=str(path), message="this is not a regular file")
        with path.open("rb") as file:
            content = file.read(LONGEST_FILE + 1)
    except OSError as error:
        return Fault(file=str(path), message=f"cannot be read: {error.strerror or error}")
    return _too_long(str(path)) if len(content) > LONGEST_FILE else content


def _too_long(file: str) -> Fault:
    return Fault(
        file=file, message=f"longer than {LONGEST_FILE // 1024} KiB", hint="an entry is a few sentences; split it"
    )


def _duplicate_id(key: str, path: Path, other: Path) -> Fault:
    return Fault(file=str(path), field="id", message=f"{key} is the id of {other} already", hint="choose another id")


_RESULTS: TypeAdapter[list[Entry | list[Fault]]] = TypeAdapter(list[Entry | list[Fault]])


def _compiled_file(contents: Iterable[tuple[Path, bytes]]) -> Path:
    digest = sha256(Path(__file__).read_bytes())
    for _, content in contents:
        digest.update(sha256(content).digest())
    return cache_dir("knowledge", f"{digest.hexdigest()}.json")


def _read_compiled(path: Path, expected: int) -> list[Entry | list[Fault]] | None:
    try:
        results = _RESULTS.validate_json(path.read_bytes(), strict=True)
    except (OSError, ValidationError):
        return None
    return results if len(results) == expected else None


def _keep_compiled(path: Path, parsed: list[Entry | list[Fault]]) -> None:
    """Keep the compiled form, and remove those that nobody has read lately. A cache that cannot be written costs time
    only."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, _RESULTS.dump_json(parsed), synced=False)
        older = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in older[8:]:
            file.unlink(missing_ok=True)
    except OSError:
        return
