"""Local weights of large open models, and checks before they are loaded.

Weights come from a folder or from the cache of the Hugging Face hub, as filled by ``hf download NAME``. Only
safetensors are loaded, because older formats can run code. The network is never used.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from agrotools.calling.services import LEARNED
from agrotools.core import ToolError
from agrotools.core.files import hub_cache
from agrotools.core.texts import install_command


class ModelKind(NamedTuple):
    """Kind of models that can be loaded: an example by its name on the hub, and the libraries imported for it."""

    example: str
    libraries: tuple[str, ...] = ("torch", "transformers")


KINDS = {
    "grounding-dino": ModelKind("IDEA-Research/grounding-dino-tiny"),
    "sam2": ModelKind("facebook/sam2.1-hiera-tiny"),
    "florence2": ModelKind(
        "florence-community/Florence-2-base", ("torch", "transformers", "torchvision")
    ),
    "open_clip": ModelKind("imageomics/bioclip", ("torch", "open_clip")),
}

LOCAL_ONLY: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""Options of the loaders of transformers: no downloads, no remote code."""
Loaded = TypeVar("Loaded")
_EXTRA = "learned"
_unavailable = partial(ToolError, "backend_unavailable")
_LARGEST_CONFIG = 2**20


@dataclass(frozen=True)
class Weights:
    """Model on this machine. ``name``: name as requested, ``kind``: key of :data:`KINDS`."""

    name: str
    kind: str
    folder: Path
    files: tuple[Path, ...]
    """all files that the model's answers depend on: weights, configuration, vocabulary"""
    stamps: tuple[tuple[int, int], ...] = ()
    """sizes and modification times of the files, so that a model is loaded again if its files are replaced"""


def weight_files(backend: str) -> tuple[Path, ...]:
    """Return the files of all models of a back-end: one model, or a detector and an outline model joined by a plus
    sign."""
    return tuple(
        file
        for model in backend.removeprefix(LEARNED).split("+")
        for file in find_weights(model).files
    )


def weights_of(backend: str) -> Weights:
    """Return the weights of the single model of a back-end."""
    return find_weights(backend.removeprefix(LEARNED))


def find_weights(model: str) -> Weights:
    """Return the model of this name in the hub's cache, or in the folder at this absolute path. ToolError
    ``backend_unavailable`` if it is missing, has an unsafe format or an unknown kind, or needs a library that is not
    installed."""
    folder = _folder(model)
    kind = _kind(folder, model)
    files = tuple(
        sorted(
            path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")
        )
    )
    if not any(path.suffix == ".safetensors" for path in files):
        others = [
            path.name for path in files if path.suffix in (".bin", ".pt", ".pth", ".ckpt", ".pl")
        ]
        raise _unavailable(
            f"{model} holds no weights as safetensors" + (f", only {others[0]}" if others else ""),
            hint="other formats can run code and are not loaded: download the model anew, or convert it",
        )
    if missing := [name for name in KINDS[kind].libraries if find_spec(name) is None]:
        raise _unavailable(
            f"{model} is a model of the kind {kind}, which needs {' and '.join(missing)}",
            hint=install_command(_EXTRA),
        )
    stamps = tuple((status.st_size, status.st_mtime_ns) for status in map(Path.stat, files))
    return Weights(model, kind, folder, files, stamps)


def library(name: str) -> Any:
    """Import a library of the extra ``learned``. It is untyped, because type checks run without the extra. Torch is
    limited to one thread, as in all tools: threads block each other, and sums depend on their number. On a GPU it
    computes in full float32, so that answers differ from those of a CPU by rounding alone."""
    try:
        module = import_module(name)
    except ImportError as error:
        raise _unavailable(
            f"{name} cannot be imported: {error}", hint=install_command(_EXTRA)
        ) from error
    if name == "torch":
        module.set_num_threads(1)
        module.backends.cudnn.allow_tf32 = False
    return module


def on_device(model: Any) -> Any:
    """Return a model of torch, ready to be asked, on the first GPU that the process may use, or else on the CPU."""
    return model.float().eval().to("cuda" if library("torch").cuda.is_available() else "cpu")


def wrong_kind(weights: Weights, does: str, *kinds: str) -> ToolError:
    """Return the error for a model that cannot perform the requested task."""
    able = ", ".join(f"{kind} ({KINDS[kind].example})" for kind in kinds)
    return _unavailable(
        f"{weights.name} is a model of the kind {weights.kind}, which does not {does}",
        hint=f"kinds that do: {able}",
    )


def unloadable(weights: Weights, error: Exception) -> ToolError:
    """Return the error for weights that a library cannot load."""
    first = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    return _unavailable(
        f"{weights.name} cannot be loaded as {weights.kind}: {first.replace(str(weights.folder), '...')}",
        hint="download its folder whole: configuration, vocabulary and safetensors",
    )


def model_loader(build: Callable[[Weights], Loaded]) -> Callable[[Weights], Loaded]:
    """Decorate a function that builds a model from weights.

    The last model is cached, and exceptions of libraries become ``backend_unavailable``.
    """

    @lru_cache(maxsize=1)
    @wraps(build)
    def load(weights: Weights) -> Loaded:
        try:
            return build(weights)
        except ToolError:
            raise
        except Exception as error:  # these libraries may raise any exception for a bad file
            raise unloadable(weights, error) from error

    return load


def _folder(model: str) -> Path:
    if model.startswith(("~", "./", "../")):
        raise _unavailable(
            f"{model} is not an absolute path", hint="write learned:/absolute/path/of/the/folder"
        )
    if model.startswith("/"):
        folder = Path(model)
        if not folder.is_dir():
            raise _unavailable(f"there is no folder {model}", hint=_download_hint("NAME"))
        return folder
    parts = model.split("/")
    if len(parts) != 2 or not all(
        part and part.strip(".") and part.isprintable() for part in parts
    ):
        hint = f"write OWNER/NAME, e.g. {KINDS['grounding-dino'].example}, or an absolute path of a folder"
        raise _unavailable(f"{model[:100]!r} is not the name of a model on the hub", hint=hint)
    cached = hub_cache() / f"models--{parts[0]}--{parts[1]}"
    snapshot = _snapshot(cached)
    if snapshot is None:
        raise _unavailable(
            f"the weights of {model} are not on this machine; nothing is downloaded unasked",
            hint=_download_hint(model),
        )
    return snapshot


def _snapshot(cached: Path) -> Path | None:
    """Return the snapshot of the branch ``main`` of a cached model, or the only one if the branch is unknown."""
    try:
        commit = (cached / "refs" / "main").read_text(encoding="utf-8").strip()
        chosen = cached / "snapshots" / Path(commit).name
        if commit and chosen.is_dir():
            return chosen
    except (OSError, UnicodeDecodeError):
        pass
    snapshots = cached / "snapshots"
    every = [path for path in snapshots.iterdir() if path.is_dir()] if snapshots.is_dir() else []
    return every[0] if len(every) == 1 else None


def _kind(folder: Path, model: str) -> str:
    if (folder / "open_clip_config.json").is_file():
        return "open_clip"
    config = _json(folder / "config.json")
    kind = str(config.get("model_type") or "").replace("_", "-")
    kind = "sam2" if kind == "sam2-video" else kind
    if kind in KINDS and kind != "open_clip":  # it has no such file
        return kind
    raise _unavailable(
        f"{model} is of no kind that is known here"
        + (f" ({kind[:40]})" if kind else ": it has no config.json"),
        hint=f"known kinds: {', '.join(f'{name} ({known.example})' for name, known in KINDS.items())}",
    )


def _json(path: Path) -> dict[str, object]:
    try:
        if path.stat().st_size > _LARGEST_CONFIG:
            return {}
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _download_hint(model: str) -> str:
    return (
        f"{install_command(_EXTRA)}, then:"
        f" hf download {model} (into {hub_cache()}), or put the model's folder somewhere and write "
        "learned:/its/absolute/path"
    )
