"""What a benchmark says of itself: the content of ``benchmark.toml``."""

from typing import Annotated

from pydantic import Field, JsonValue

from agrotools.core.noun import Noun
from agrotools.core.taxonomy import Mode


class SourceNote(Noun):
    """Where files or labels come from, and under what terms they may be used."""

    name: str
    licence: str
    url: str | None = None
    citation: str | None = None
    note: str | None = None


class BenchmarkHeader(Noun):
    """Name, version and terms of a benchmark, its toolset and the modes it can be run in."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
    version: Annotated[str, Field(min_length=1)]
    licence: Annotated[str, Field(min_length=1)]
    description: str = ""
    synthetic: bool = False
    """Whether the inputs were drawn rather than photographed; every report says so."""
    toolset: Annotated[tuple[str, ...], Field(min_length=1)]
    modes: Annotated[tuple[Mode, ...], Field(min_length=1)] = ("no-tool", "step-by-step", "end-to-end")
    sources: tuple[SourceNote, ...] = ()
    backends: dict[str, str] = {}
    """Back-ends of tools that the benchmark needs, where not the default; a run uses them unless told otherwise."""
    metadata: dict[str, JsonValue] = {}
    """How it was built: package version, seeds, trained heads in use..."""
