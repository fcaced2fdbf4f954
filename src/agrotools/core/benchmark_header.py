"""What a benchmark says of itself: the content of ``benchmark.toml``."""

import uuid
from typing import Annotated, Self

from pydantic import Field, JsonValue, model_validator

from agrotools.core.frozen_model import FrozenModel
from agrotools.core.taxonomy import Mode, Protocol

_CANARIES = uuid.UUID("5d0c7a3e-6c1f-4b57-9a64-0b1f2f6f7a11")


def canary_of(name: str, version: str) -> str:
    """The canary GUID of a benchmark: the same each time it is built."""
    return str(uuid.uuid5(_CANARIES, f"{name} {version}"))


class SourceNote(FrozenModel):
    """Where files or labels come from, and under what terms they may be used."""

    name: str
    licence: str
    url: str | None = None
    citation: str | None = None
    note: str | None = None


class BenchmarkHeader(FrozenModel):
    """Name, version and terms of a benchmark, its toolset and the modes it can be run in."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
    version: Annotated[str, Field(min_length=1)]
    licence: Annotated[str, Field(min_length=1)]
    description: str = ""
    synthetic: bool = False
    """Whether the inputs were drawn rather than photographed; every report says so."""
    toolset: tuple[str, ...]
    """May be empty where ``no-tool`` is the only mode."""
    modes: Annotated[tuple[Mode, ...], Field(min_length=1)] = ("no-tool", "step-by-step", "end-to-end")
    bare: bool = False
    """Whether the query of a sample is the whole prompt, as other people's protocols have it."""
    sources: tuple[SourceNote, ...] = ()
    backends: dict[str, str] = {}
    """Back-ends of tools that the benchmark needs, where not the default; a run uses them unless told otherwise."""
    protocol: Protocol | None = None
    """That of the benchmark's own runs; runs of models use it, in the modes that it has, unless told otherwise."""
    max_steps: Annotated[int | None, Field(ge=1)] = None
    """Model turns per sample that its own runs had; the same holds."""
    canary: str = ""
    """GUID that stands in every sample: where a model can complete it, the benchmark was in its training data."""
    metadata: dict[str, JsonValue] = {}
    """How it was built: package version, seeds, trained heads in use..."""

    @model_validator(mode="after")
    def _tools_where_they_are_used(self) -> Self:
        if not self.toolset and self.modes != ("no-tool",):
            raise ValueError('an empty toolset is for benchmarks whose only mode is "no-tool"')
        return self
