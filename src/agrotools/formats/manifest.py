"""Manifest of a run: all settings that must be equal for two records to belong together."""

import operator
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, cast

import orjson
from pydantic import Field, JsonValue

from agrotools.core import MODES, FrozenModel, Mode, Protocol, ToolImages
from agrotools.core.files import sha256_of_json
from agrotools.core.texts import count_text, name_in_tables
from agrotools.formats.tool_check import ToolCheck


class ServerUse(FrozenModel):
    """A tool server as the manifest of a run holds it: other values are other settings."""

    name: str
    address: str
    version: str
    schemas: str
    """SHA-256 over its tools with their schemas and descriptions."""
    sealed: bool
    """True if its processes could read their own programs and the files of their sample alone."""


class Shard(FrozenModel):
    """One of ``count`` parts of a run (``--shard 3/16``), for runs on several machines that are merged afterwards."""

    number: int
    """From 1."""
    count: int
    sample_ids: tuple[str, ...]
    """Samples of the whole run."""
    planned: dict[Mode, int]
    """Number of records of one epoch of the whole run, by mode."""

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def __repr__(self) -> str:
        return f"{self} of {', '.join(f'{mode} {n}' for mode, n in self.planned.items())}"


def task_types_text(names: Sequence[str]) -> str:
    """Return task types in plain words: ``tree counting, pest diagnosis and weed identification``."""
    *others, last = [name.replace("_", " ") for name in names]
    return f"{', '.join(others)} and {last}" if others else last


class TaskTypes(FrozenModel):
    """Task types that a run is limited to (``--task-type``), in the order of the tables of scores."""

    names: tuple[str, ...]
    n_questions: int
    """Number of questions of these task types."""
    n_of: int
    """Number of questions of the benchmark, or of its quick part if the run is limited to that, too."""

    @property
    def words(self) -> str:
        """Names in plain words: ``pest diagnosis and weed identification``."""
        return task_types_text(self.names)

    def __str__(self) -> str:
        return f"{self.n_questions:,} of {count_text(self.n_of, 'question')}, only {self.words}"

    __repr__ = __str__  # messages on runs that differ show it


class Limit(FrozenModel):
    """Random choice of questions that a run is limited to (``--limit``): in each mode those with the lowest hashes."""

    n_questions: int
    """Number of questions that were chosen, in the mode with most."""
    n_of: int
    """Number of questions that they were chosen from, in the mode with most."""

    def __str__(self) -> str:
        return f"a random {self.n_questions:,} of {count_text(self.n_of, 'question')}"


def conditions_label(degrade: str, faults: str) -> str:
    """Return what stands behind a model's name: the degradation of its pictures and the faults in its tool calls."""
    return "".join(
        f" ({each})" for each in (degrade, faults and f"faults {faults.replace(',', ', ')}") if each
    )


FORMAT = 1
"""Format of manifests that this version writes, and the latest that it reads."""


class Manifest(FrozenModel):
    """Model, benchmark, tools and settings of a run. Status is not stored; it follows from the records."""

    format: int = FORMAT
    agrotools: str
    """Version of the package that started the run."""
    scoring: str
    """Scoring version under which the run was started."""
    benchmark: str
    benchmark_path: str
    """Argument of ``agrotools eval``: a name or a folder. For convenience only; the hash identifies the benchmark."""
    data_root: str | None = None
    """Folder of the benchmark's files (``--data-root``). For convenience only."""
    benchmark_version: str
    benchmark_options: dict[str, str | int | bool] = {}
    """Values of ``--option``; their effect is covered by the hash of the benchmark."""
    benchmark_hash: str
    degrade: str = ""
    """Degradation of the pictures, which runs of version 0.2.0 could ask for; empty if the files are as they are."""
    faults: str = ""
    """Chances of ``--faults``; empty if the tools have no faults but their own."""
    clean_hash: str = ""
    """Hash of the benchmark without the degradation; empty without one."""
    left_out: dict[str, tuple[str, ...]] = {}
    """Ids of the samples that cannot be degraded, by reason."""
    synthetic: bool = False
    tool_checks: Annotated[tuple[ToolCheck, ...], Field(exclude_if=lambda checks: not checks)] = ()
    """How often the tools agree with the table of whoever built the benchmark from own photos, as the build found."""
    benchmark_warnings: Annotated[tuple[str, ...], Field(exclude_if=lambda lines: not lines)] = ()
    """Sentences above all results on the benchmark, such as that it uses few rows of its table."""
    model: str
    name: Annotated[str, Field(exclude_if=lambda name: not name)] = ""
    """Name of the model in tables and on pages (``--name``); empty: the model itself."""
    model_hash: str = ""
    """SHA-256 of the script of a scripted model, or over the ends of the model files of ``--serve``; else empty."""
    base_url: str | None = None
    """Address of the model; without its port for a server of ``--serve``."""
    server: Annotated[tuple[str, ...], Field(exclude_if=lambda server: not server)] = ()
    """Program of ``--serve`` and its arguments; empty without."""
    server_version: Annotated[str, Field(exclude_if=lambda version: not version)] = ""
    """Version of that program as it states it; of the first start if it changed."""
    endpoint: Annotated[dict[str, tuple[str, ...]], Field(exclude_if=lambda found: not found)] = {}
    """What replies said of their origin (``model``, ``provider``, ``system_fingerprint``), and what was ``adapted`` in
    the requests because the endpoint refused it."""
    usage: Annotated[dict[str, int], Field(exclude_if=lambda usage: not usage)] = {}
    """``input_tokens``, ``output_tokens`` and, if the server reports them, ``cached_tokens`` of all replies of the wire
    (of invocations that were not killed)."""
    setup: Annotated[dict[str, tuple[str, ...]], Field(exclude_if=lambda setup: not setup)] = {}
    """By tool, what only the person who runs the tools can do about its errors; no model was shown it."""
    privileged: bool = False
    sealed: bool | None = None
    """True if the model is an agent that could not reach the gold, False if it might have; None for other models."""
    protocol: Protocol
    images: bool = True
    tool_images: Annotated[ToolImages, Field(exclude_if=lambda place: not place)] = ""
    """Where the model is shown the pictures that its calls made; empty if it is not."""
    settings: dict[str, JsonValue] = {}
    """Sampling settings as sent, e.g. temperature and token limit."""
    max_steps: int
    seed: int
    toolset: dict[str, str] = {}
    """Version and schema hash by tool."""
    toolset_hash: str
    tool_data: dict[str, str] = {}
    """SHA-256 of the data files that a tool's results depend on (e.g. trained heads), by tool."""
    tools: str = "all"
    """Tools that each sample offers (``--tools``): ``all``, ``needed`` or ``+N``."""
    backends: dict[str, str] = {}
    """Back-end by tool, if not the default; ``vlm:NAME`` for a back-end that uses the model NAME."""
    tool_servers: Annotated[tuple[ServerUse, ...], Field(exclude_if=lambda uses: not uses)] = ()
    """Tool servers of the run; ``tool_data`` has the hashes of the bindings that run tools of ours on them."""
    vlm_base_url: str | None = None
    """Address of the vision model that tools use."""
    prompt_hash: str
    python: str = ""
    libraries: dict[str, str] = {}
    modes: tuple[Mode, ...]
    epochs: int
    quick: bool = False
    """True if the run is limited to the quick part of the benchmark, a fixed selection of its samples."""
    task_types: Annotated[TaskTypes | None, Field(exclude_if=operator.not_)] = None
    """Task types that the run is limited to; None: all."""
    limit: Annotated[Limit | None, Field(exclude_if=operator.not_)] = None
    """Choice of questions by ``--limit``; None if it left none out, and in runs of versions that did not store it."""
    n_questions: int = 0
    """Number of questions of the whole benchmark; 0 in runs of versions that did not store it."""
    sample_ids: tuple[str, ...]
    """Samples requested so far (``--limit`` may grow between invocations)."""
    planned: dict[Mode, int] = {}
    """Number of records of a complete run, by mode."""
    shard: Annotated[Shard | None, Field(exclude_if=lambda shard: shard is None)] = None
    """Part of a run that this run is; ``sample_ids`` and ``planned`` are those of the part. None: a whole run."""

    @property
    def shown_model(self) -> str:
        """Model by the name that the user gave it, if any; never an address."""
        return self.name or name_in_tables(self.model)

    @property
    def labelled_model(self) -> str:
        """Model as it is shown, with its conditions: pictures of results, degraded files, faulty tools."""
        seen = ", tool images" if self.tool_images else ""
        return self.shown_model + seen + conditions_label(self.degrade, self.faults)


def manifest_json(manifest: Manifest) -> bytes:
    """Return a manifest as indented JSON."""
    return orjson.dumps(manifest.model_dump(mode="json"), option=orjson.OPT_INDENT_2) + b"\n"


def parse_manifest(path: Path) -> Manifest:
    """Return the manifest in a JSON file; OSError if it cannot be read, ValueError if it is none."""
    return Manifest.model_validate_json(path.read_bytes())


IDENTITY = (
    *"scoring benchmark benchmark_hash degrade faults model model_hash server protocol".split(),
    *"images tool_images settings max_steps seed toolset_hash tool_data tools backends tool_servers".split(),
    *"prompt_hash quick task_types shard".split(),
)
"""Fields that must not change when a run is resumed; modes, epochs and samples may grow, and the address may change."""


def identity_hash(manifest: Manifest) -> str:
    """Return the SHA-256 of the identity fields and the addresses: two servers may use one name for different models.

    A run in a user-chosen folder may be resumed at another address; a folder named by this hash can never be mistaken
    for a run at another one.
    """
    fields = manifest.model_dump(mode="json", include={*IDENTITY, "base_url", "vlm_base_url"})
    if manifest.shard:
        del fields["shard"]["number"]  # the same for all shards of a run
    return sha256_of_json(fields)


_LABELS = {
    "scoring": "scoring version",
    "benchmark_hash": "content of the benchmark",
    "benchmark_options": "options of the benchmark",
    "clean_hash": "content of the benchmark before it was degraded",
    "model_hash": "content of the model",
    "max_steps": "most steps",
    "toolset": "versions of tools",
    "toolset_hash": "versions of tools",
    "tool_data": "data of tools",
    "backends": "back-ends of tools",
    "tool_servers": "tool servers",
    "prompt_hash": "prompts",
    "quick": "quick part",
    "count": "number of shards",
    "planned": "records of the whole run",
    "sample_ids": "samples of the whole run",
}
"""Words for fields whose names are no plain words."""
_SHOWN = 100
"""Most characters of a value in a message."""


def spell_difference(field: str, first: object, other: object, holders: tuple[str, str]) -> str:
    """Return which of two runs has which value of a field, of tables only the rows that differ.

    ``holders``: words for the runs, e.g. ``("in runs/a", "in runs/b")``.
    """
    label = _LABELS.get(field, field.replace("_", " "))
    rows: list[tuple[str, object, object]] = [(label, first, other)]
    if isinstance(first, dict) and isinstance(other, dict):
        one, two = cast("dict[str, object]", first), cast("dict[str, object]", other)
        pairs = ((row, one.get(row), two.get(row)) for row in dict.fromkeys((*one, *two)))
        rows = [(f"{label}, {row}", a, b) for row, a, b in pairs if a != b]
    in_one, in_two = holders
    return "; ".join(
        f"{row}: {_value_text(one)} {in_one}, {_value_text(two)} {in_two}" for row, one, two in rows
    )


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and len(value) == 64:  # a hash
        return value[:12]
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, cast("Sequence[object]", value)))
    text = value if isinstance(value, str) else repr(value)
    return "none" if text in ("", "None") else text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def differences(old: Manifest, new: Manifest) -> list[str]:
    """Return the identity fields in which the manifest of a run and that of a new command differ.

    Data of tools are compared for the tools of both: further samples may need further tools.
    """
    known = old.model_copy(update={"tool_data": new.tool_data | old.tool_data})
    wanted = new.model_copy(update={"tool_data": old.tool_data | new.tool_data})
    pairs = [(field, getattr(known, field), getattr(wanted, field)) for field in IDENTITY]
    holders = ("there", "in this command")
    return [spell_difference(*pair, holders) for pair in pairs if pair[1] != pair[2]]


def sum_usage(*usages: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of the tokens of several manifests; a count of 0 stays, because it was reported."""
    return {
        name: sum(usage.get(name, 0) for usage in usages) for name in dict.fromkeys(chain(*usages))
    }


def sum_setup(*found: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return what several manifests say can be done, by tool."""
    return {
        tool: tuple(dict.fromkeys(text for each in found for text in each.get(tool, ())))
        for tool in dict.fromkeys(chain(*found))
    }


def merged(old: Manifest, new: Manifest) -> Manifest:
    """Return ``old`` extended by the additional modes, epochs and samples of ``new``."""
    return old.model_copy(
        update={
            "name": new.name or old.name,
            "data_root": new.data_root or old.data_root,
            "tool_checks": new.tool_checks or old.tool_checks,
            "benchmark_warnings": new.benchmark_warnings or old.benchmark_warnings,
            "limit": _merged_limit(old.limit, new.limit),
            "modes": tuple(dict.fromkeys((*old.modes, *new.modes))),
            "epochs": max(old.epochs, new.epochs),
            "tool_data": new.tool_data | old.tool_data,
            "sample_ids": tuple(dict.fromkeys((*old.sample_ids, *new.sample_ids))),
            "planned": {
                mode: max(old.planned.get(mode, 0), new.planned.get(mode, 0))
                for mode in MODES
                if mode in old.planned or mode in new.planned
            },
        }
    )


def _merged_limit(old: Limit | None, new: Limit | None) -> Limit | None:
    """Return the larger one of two limits, whose questions contain the others; None if one of them left none out."""
    if old is None or new is None:
        return None
    return max(old, new, key=lambda limit: limit.n_questions)
