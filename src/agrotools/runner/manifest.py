"""The manifest of a run: everything that must be equal for two records to belong together."""

import hashlib

import orjson
from pydantic import JsonValue

from agrotools.core import MODES, FrozenModel, Mode, Protocol
from agrotools.scoring.metrics import FIRST_VERSION


class Manifest(FrozenModel):
    """Model, benchmark, tools and settings of a run. Status is never stored here: it follows from the records."""

    format: int = 1
    agrotools: str
    """Package version that started the run."""
    scoring: str = FIRST_VERSION
    """Scoring version that it was started under."""
    benchmark: str
    benchmark_path: str
    """The argument of ``agrotools eval``: a name or a folder. Only a convenience; the hash identifies it."""
    data_root: str | None = None
    """Folder of its files, as of ``--data-root``. Only a convenience, too."""
    benchmark_version: str
    benchmark_options: dict[str, str | int | bool] = {}
    """Values of ``--option``; the hash of the benchmark covers their effect."""
    benchmark_hash: str
    synthetic: bool = False
    model: str
    model_hash: str = ""
    """SHA-256 of the script of a scripted model; empty for models that no file holds."""
    base_url: str | None = None
    privileged: bool = False
    protocol: Protocol
    images: bool = True
    settings: dict[str, JsonValue] = {}
    """Sampling settings as sent: temperature, token limit..."""
    max_steps: int
    seed: int
    toolset: dict[str, str] = {}
    """Tool name to version and hash of its schema."""
    toolset_hash: str
    tool_data: dict[str, str] = {}
    """Tool name to SHA-256 over the files that its results rest on beside the call (trained heads, for instance)."""
    backends: dict[str, str] = {}
    """Tool to back-end, where not the default; ``vlm:NAME`` where the model NAME is asked."""
    vlm_base_url: str | None = None
    """Address of the model that tools ask."""
    prompt_hash: str
    python: str = ""
    libraries: dict[str, str] = {}
    modes: tuple[Mode, ...]
    epochs: int
    sample_ids: tuple[str, ...]
    """The samples asked for so far (``--limit`` may grow from call to call)."""
    planned: dict[Mode, int] = {}
    """Records that each mode is to hold when it is done; empty in runs of versions that did not say so."""


IDENTITY = (
    "scoring",
    "benchmark",
    "benchmark_hash",
    "model",
    "model_hash",
    "protocol",
    "images",
    "settings",
    "max_steps",
    "seed",
    "toolset_hash",
    "tool_data",
    "backends",
    "prompt_hash",
)
"""Fields in which a resumed run must not differ; modes, epochs and samples may grow, and an endpoint may move."""


def identity_hash(manifest: Manifest) -> str:
    """SHA-256 over the identity fields and the endpoint: two servers may call different models by the same name.

    A run in a folder of choice may go on when its endpoint has moved; a run in a folder named by this hash cannot be
    taken for that of another endpoint.
    """
    identity_fields = (*IDENTITY, "base_url", *(("vlm_base_url",) if manifest.vlm_base_url else ()))
    fields = {field: value for field, value in manifest.model_dump(mode="json").items() if field in identity_fields}
    return hashlib.sha256(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)).hexdigest()


def differences(old: Manifest, new: Manifest) -> list[str]:
    """The identity fields in which two manifests differ, as ``field: old -> new``."""
    return [
        f"{field}: {getattr(old, field)!r} -> {getattr(new, field)!r}"
        for field in IDENTITY
        if getattr(old, field) != getattr(new, field)
    ]


def merged(old: Manifest, new: Manifest) -> Manifest:
    """``old`` grown by what ``new`` asks in addition."""
    return old.model_copy(
        update={
            "data_root": new.data_root or old.data_root,
            "modes": tuple(dict.fromkeys((*old.modes, *new.modes))),
            "epochs": max(old.epochs, new.epochs),
            "sample_ids": tuple(dict.fromkeys((*old.sample_ids, *new.sample_ids))),
            "planned": {
                mode: max(old.planned.get(mode, 0), new.planned.get(mode, 0))
                for mode in MODES
                if mode in old.planned or mode in new.planned
            },
        }
    )
