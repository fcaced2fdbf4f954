"""Entries of the knowledge base: their format, and loading of shipped and user entries from TOML files.

An entry is one file, ``data/kb/FOLDER/SLUG.toml``. Validation is strict: an unknown key, a number written as text or an
invalid date is a fault, never silently dropped. User entries are in the folders named by ``AGROTOOLS_KB`` (separated by
``:``), or by default in ``kb`` inside the user's data folder. A file that is not a valid entry gives a
:class:`KnowledgeFault` with location and reason; all others are loaded.
"""

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints, ValidationError
from pydantic_core import to_json

from agrotools.core import FrozenModel
from agrotools.core.files import provide_home
from agrotools.core.texts import spell_location

Kind = Literal["pest", "disease", "weed", "crop", "method"]
Coverage = Literal["verified", "partial", "stub"]
Section = Literal[
    "identification",
    "symptoms",
    "causes",
    "life_cycle",
    "thresholds",
    "management",
    "reference_values",
]
Passage = Literal[Section, "names"]
"""A section, or the part that every entry has: its names, crops and taxonomy."""
ManagementType = Literal["cultural", "biological", "chemical", "monitoring", "physical"]
PathogenType = Literal[
    "fungus", "oomycete", "bacterium", "virus", "viroid", "phytoplasma", "nematode", "mite", "insect", "alga",
    "disorder", "unknown",
]  # fmt: skip
GrowthForm = Literal["grass", "broadleaf", "sedge", "shrub", "tree", "vine"]
How = Literal[
    "page read", "excerpt read", "cited in data set paper", "general knowledge, not verified"
]

FOLDER_OF_KIND: dict[Kind, str] = {kind: f"{kind}s" for kind in get_args(Kind)}

_NAME = Annotated[str, StringConstraints(min_length=1, max_length=120)]
_TEXT = Annotated[str, StringConstraints(min_length=3, max_length=700)]
_SHORT = Annotated[str, StringConstraints(min_length=1, max_length=300)]
_PHRASE = Annotated[str, StringConstraints(min_length=3, max_length=160)]
_NUMBER = Annotated[float, Field(allow_inf_nan=False)]
_ID = Annotated[
    str, StringConstraints(pattern=r"^(pest|disease|weed|crop|method)\.[a-z0-9_]{1,80}$")
]
_KEY = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,40}$")]


class Names(FrozenModel):
    """Names of a thing. ``datasets``: labels of each data set by its key, exactly as published."""

    en: _NAME
    sci: _NAME | None = None
    aliases: tuple[_NAME, ...] = Field((), max_length=60)
    zh: tuple[_NAME, ...] = Field((), max_length=30)
    datasets: dict[_KEY, tuple[_NAME, ...]] = {}

    def all(self) -> tuple[str, ...]:
        """Return every name once: English, scientific, aliases, Chinese, labels of data sets."""
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
    """One or two sentences in our own words, and the keys of their sources."""

    section: Section
    text: _TEXT
    sources: tuple[_KEY, ...]
    type: ManagementType | None = None
    """type of a management claim"""
    value: _NUMBER | None = None
    unit: _SHORT | None = None
    condition: _SHORT | None = None
    region: _SHORT | None = None
    formula: _SHORT | None = None


class Source(FrozenModel):
    """Source of a claim. ``how``: how the claim was obtained from it."""

    title: _SHORT
    publisher: _SHORT
    year: Annotated[int, Field(ge=1500, le=2100)] | None = None
    url: Annotated[str, StringConstraints(pattern=r"^https?://\S{3,400}$")] | None = None
    licence: _SHORT
    checked: date
    how: How


class KnowledgeEntry(FrozenModel):
    """One pest, disease, weed, crop or method."""

    id: _ID
    kind: Kind
    coverage: Coverage
    last_reviewed: date
    crops: tuple[_NAME, ...] = Field((), max_length=80)
    described_as: tuple[_PHRASE, ...] = Field((), max_length=20)
    """Short descriptions of what people see, in the words of farmers and gardeners.

    They are searched but never shown, and need no source: they must not contradict the claims or go beyond them.
    """
    names: Names
    taxonomy: Taxonomy = Taxonomy()
    claims: tuple[Claim, ...] = Field((), max_length=80)
    sources: dict[_KEY, Source] = {}

    @property
    def slug(self) -> str:
        return self.id.partition(".")[2]

    @property
    def title(self) -> str:
        """English name followed by the scientific name in brackets."""
        return f"{self.names.en} ({self.names.sci})" if self.names.sci else self.names.en

    def claims_of(self, section: Section) -> tuple[Claim, ...]:
        return tuple(claim for claim in self.claims if claim.section == section)


SHIPPED = Path(__file__).parents[1] / "data" / "kb"
LONGEST_FILE = 64 * 1024
"""Maximum bytes of a file; longer files are rejected, because parsing time grows with the square of a hostile key."""
_MOST_DOTS = 60
"""Maximum number of full stops in a line. A key of thousands of parts would take the parser a minute."""
MOST_FILES = 20_000


class KnowledgeFault(FrozenModel):
    """One error in a file of the knowledge base."""

    file: str
    message: str
    field: str = ""
    """path to the value, such as ``claims[2].sources``"""
    hint: str = ""

    @property
    def where(self) -> str:
        return f"{self.file} {self.field}".rstrip()


@dataclass(frozen=True)
class Loaded:
    """Entries in order of id, the file of each, and the faults of files that could not be loaded."""

    entries: tuple[KnowledgeEntry, ...]
    files: dict[str, Path]
    """file of each entry by id"""
    faults: tuple[KnowledgeFault, ...]


def user_folders() -> tuple[Path, ...]:
    """Return the folders of user entries, which need not exist; new entries are written to the first."""
    provide_home()
    folders = [
        part for part in os.environ.get("AGROTOOLS_KB", "").split(os.pathsep) if part.strip()
    ]
    if folders:
        return tuple(Path(part).expanduser().absolute() for part in folders)
    from platformdirs import user_data_path

    return (user_data_path("agrotools") / "kb",)


def kb_files() -> tuple[Path, ...]:
    """Return all files of the knowledge base in loading order, shipped ones first."""
    return (*shipped_files(), *(path for folder in user_folders() for path in toml_files(folder)))


@cache
def shipped_files() -> tuple[Path, ...]:
    """Return the files of the entries shipped with agrotools; listed once, because names are looked up very often."""
    return tuple(toml_files(SHIPPED))


def toml_files(folder: Path) -> list[Path]:
    """Return the TOML files in ``folder`` and its subfolders, sorted; empty if it does not exist.

    Links to folders are not followed.
    """
    paths: list[Path] = []
    for here, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        paths += [
            Path(here, name)
            for name in sorted(names)
            if name.endswith(".toml") and not name.startswith(".")
        ]
        if len(paths) >= MOST_FILES:
            break
    return sorted(paths)[:MOST_FILES]


def load(paths: Sequence[Path] | None = None) -> Loaded:
    """Load the entries in ``paths`` (default: :func:`kb_files`). A faulty file does not affect the others."""
    faults: list[KnowledgeFault] = []
    entries: dict[str, KnowledgeEntry] = {}
    files: dict[str, Path] = {}
    for path in kb_files() if paths is None else paths:
        result = read_entry(path)
        if isinstance(result, KnowledgeEntry):
            if result.id in entries:
                message = f"{result.id} is the id of {files[result.id]} already"
                faults.append(
                    KnowledgeFault(
                        file=str(path), field="id", message=message, hint="choose another id"
                    )
                )
            else:
                entries[result.id], files[result.id] = result, path
        else:
            faults += result
    ordered = tuple(entries[key] for key in sorted(entries))
    return Loaded(ordered, files, tuple(faults))


def parse(content: bytes, file: str) -> KnowledgeEntry | list[KnowledgeFault]:
    """Return the entry in the bytes of a TOML file, or all its faults."""
    if len(content) > LONGEST_FILE:
        hint = "an entry is a few sentences; split it"
        return [
            KnowledgeFault(file=file, message=f"longer than {LONGEST_FILE // 1024} KiB", hint=hint)
        ]
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return [
            KnowledgeFault(
                file=file, message=f"line {line} is not UTF-8 text", hint="save the file as UTF-8"
            )
        ]
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > _MOST_DOTS:
            return [
                KnowledgeFault(
                    file=file, message=f"line {number} has more than {_MOST_DOTS} full stops"
                )
            ]
    try:
        # Validated as JSON, which has tuples as lists and dates as text, so that strict mode accepts them.
        return KnowledgeEntry.model_validate_json(
            to_json(tomllib.loads(text), inf_nan_mode="constants"), strict=True
        )
    except ValidationError as error:
        known = {"extra_forbidden": "no such key", "missing": "this is missing"}
        faults = [
            (spell_location(fault["loc"]), known.get(fault["type"], fault["msg"]))
            for fault in error.errors(include_url=False, include_input=False)[:50]
        ]
    except (
        ValueError,
        RecursionError,
    ) as error:  # an integer of thousands of digits is also a ValueError
        message = "too deeply nested" if isinstance(error, RecursionError) else str(error)
        faults = [("", f"not valid TOML: {message}"[:400])]
    return [KnowledgeFault(file=file, field=field, message=message) for field, message in faults]


def read_entry(path: Path) -> KnowledgeEntry | list[KnowledgeFault]:
    """Return the entry in a file, or all its faults."""
    try:
        if not path.is_file():
            return [KnowledgeFault(file=str(path), message="this is not a regular file")]
        with path.open("rb") as file:
            return parse(file.read(LONGEST_FILE + 1), str(path))
    except OSError as error:
        return [
            KnowledgeFault(file=str(path), message=f"cannot be read: {error.strerror or error}")
        ]
