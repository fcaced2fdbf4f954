"""``agrotools eval --serve transformers`` with a tiny random model. Needs ``python tests/environments.py learned``."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import run_command
from support.eval_process import finished
from support.text_benchmark import write_text_benchmark

for needed in ("torch", "transformers", "fastapi", "uvicorn"):
    pytest.importorskip(needed, reason="needs transformers[serving]: python tests/environments.py learned")
pytestmark = pytest.mark.slow

SAMPLES = 4
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
MODEL = f"""
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

letters = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "<end>"]
tokenizer = Tokenizer(models.BPE(vocab={{letter: number for number, letter in enumerate(letters)}}, merges=[]))
tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
whole = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", pad_token="<end>")
sizes = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2)
end = len(letters) - 1
config = Qwen2Config(vocab_size=len(letters), eos_token_id=end, pad_token_id=end, bos_token_id=None, **sizes)
for folder, template in (("my model", {TEMPLATE!r}), ("silent", None)):
    whole.chat_template = template
    whole.save_pretrained(folder)
    Qwen2ForCausalLM(config).save_pretrained(folder)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a benchmark, a tiny model, and one without a chat template."""
    folder = tmp_path_factory.mktemp("served")
    write_text_benchmark(folder / "questions", SAMPLES)
    subprocess.run([sys.executable, "-c", MODEL], cwd=folder, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    return folder


def command(folder: Path, model: str) -> "subprocess.CompletedProcess[str]":
    words = ["eval", "questions", "-m", model, "--serve", "transformers", "--out", f"run of {model[2:]}"]
    limits = ["--mode", "no-tool", "--max-output-tokens", "8", "--allow-invalid"]
    return run_command(*words, *limits, cwd=folder, HF_HUB_OFFLINE="1")


def test_a_tiny_model_is_served(folder: Path):
    done = command(folder, "./my model")
    assert done.returncode == 0, done.stderr
    run = folder / "run of my model"
    assert len(finished(run)) == SAMPLES
    assert json.loads((run / "manifest.json").read_text())["server_version"].startswith("transformers 5.")
    assert (run / "server.log").read_text().count('POST /v1/chat/completions HTTP/1.1" 200') > SAMPLES


def test_a_model_that_cannot_chat_is_named_with_the_reason(folder: Path):
    done = command(folder, "./silent")
    assert done.returncode == 3
    assert "transformers cannot answer with ./silent" in done.stderr
    assert "tokenizer.chat_template is not set" in done.stderr
