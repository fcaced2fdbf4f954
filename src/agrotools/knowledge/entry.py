"""Records of the knowledge base: an entry, its names, its claims, and the sources of each claim.

An entry is one TOML file, ``data/kb/FOLDER/SLUG.toml``. Everything is validated strictly: an unknown key, a number
written as text or a date that is none is a fault, never silently dropped.
"""

from datetime import date
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from agrotools.core import FrozenModel

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
        labels = (label for found in self.datasets.values() for label in found)
        named = (self.en, *([self.sci] if self.sci else []), *self.aliases, *self.zh, *labels)
        return tuple(dict.fromkeys(named))


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
