"""Weights of open models on this machine, checked before they are loaded.

They come from a folder, or from the cache of the Hugging Face hub as ``hf download NAME`` fills it. Only safetensors
are loaded, because older formats can run code. Nothing is downloaded.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
from mcp.server.mcpserver.exceptions import ToolError

EXAMPLES = {
    "grounding-dino": "IDEA-Research/grounding-dino-tiny",
    "sam2": "facebook/sam2.1-hiera-tiny",
    "florence2": "florence-community/Florence-2-base",
    "open_clip": "imageomics/bioclip",
}
"""Kinds of models that can be loaded, each with a model of the hub."""
LOCAL_ONLY: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""Options of the loaders of transformers: no downloads, no remote code."""
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
"""Endings of weights in formats that can run code."""
Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Weights:
    """Weights of a model. ``name``: as the user named it; ``kind``: a key of :data:`EXAMPLES`."""

    name: str
    kind: str
    folder: Path


def find_weights(model: str, kind: str) -> Weights:
    """Return the weights of a model of a kind: by its name on the hub, or by the absolute path of its folder.

    Raises:
        ToolError: they are not on this machine, of another kind, or in a format that can run code.
    """
    folder = _folder(model)
    found = _kind(folder)
    if found != kind:
        raise ToolError(
            f"{model} is {found or 'of no kind that is known here'}, and {kind} is needed, as in {EXAMPLES[kind]}"
        )
    names = sorted(path.name for path in folder.iterdir())
    if not any(name.endswith(".safetensors") for name in names):
        pickles = [name for name in names if name.endswith(_PICKLES)]
        only = f", only {pickles[0]}, a format that can run code" if pickles else ""
        raise ToolError(f"{model} holds no weights as safetensors{only}")
    return Weights(model, kind, folder)


def _folder(model: str) -> Path:
    if Path(model).is_absolute():
        if not Path(model).is_dir():
            raise ToolError(f"there is no folder {model}")
        return Path(model)
    try:
        return Path(snapshot_download(model, local_files_only=True))
    except HFValidationError:
        raise ToolError(
            f"{model[:100]!r} is neither OWNER/NAME of the hub nor the absolute path of a folder"
        ) from None
    except LocalEntryNotFoundError:
        raise ToolError(
            f"the weights of {model} are not on this machine: hf download {model}"
        ) from None


def _kind(folder: Path) -> str:
    """Return the kind of the model in a folder; empty if its files name none."""
    if (folder / "open_clip_config.json").is_file():
        return "open_clip"
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        kind = str(config["model_type"]).replace("_", "-")
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return ""
    return "sam2" if kind == "sam2-video" else kind


def model_loader(build: Callable[[Weights], Loaded]) -> Callable[[Weights], Loaded]:
    """Decorate a function that builds a model from weights: the last model is kept, and what goes wrong in a library
    becomes a ToolError."""

    @lru_cache(maxsize=1)
    @wraps(build)
    def load(weights: Weights) -> Loaded:
        try:
            return build(weights)
        except ToolError:
            raise
        except Exception as error:  # these libraries may raise any exception for a bad file
            first = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            why = first.replace(str(weights.folder), "...")
            raise ToolError(f"{weights.name} cannot be loaded as {weights.kind}: {why}") from error

    return load


def torch_library() -> Any:
    """Import torch with one thread, because sums depend on the number of threads, and with full float32 on a GPU, so
    that answers differ from those of a CPU by rounding alone."""
    import torch

    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    return torch


def on_device(model: Any) -> Any:
    """Return a model, ready to be asked, on the first GPU that the process may use, or else on the CPU."""
    device = "cuda" if torch_library().cuda.is_available() else "cpu"
    return model.float().eval().to(device)
