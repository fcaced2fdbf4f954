"""``agrotools_build.Env`` in TRL as it is. Needs TRL: ``python tests/environments.py trl``."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agrotools_build import Env, env_rows

trl = pytest.importorskip("trl", reason="needs TRL: python tests/environments.py trl")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

END = "<|im_end|>"


def tiny_model(texts: Sequence[str]) -> tuple[Any, Any]:
    """Return a language model of random weights, and a tokenizer with the chat template of Qwen3."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer, backend.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=1_500, special_tokens=[END, "<|pad|>"], initial_alphabet=alphabet
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token=END, pad_token="<|pad|>", padding_side="left",
        chat_template=Path(trl.__file__).with_name("chat_templates").joinpath("qwen3.jinja").read_text(),
    )  # fmt: skip
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, max_position_embeddings=65_536, tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    return Qwen3ForCausalLM(config), tokenizer


def rows_with_golds() -> dict[str, tuple[dict[str, Any], str]]:
    """Return rows of questions that need no chart, and their right answers, by question."""
    from agrotools.agents.modes import reference_history
    from agrotools.formats.reference_results import derived_values
    from agrotools.text.answer_form import format_answer
    from agrotools_build.env import draw_group

    found = {}
    for row in env_rows("train", 12):
        group, _, sample_id = row["id"].partition(":")
        sample = draw_group("train", 0, int(group.rpartition("-")[2])).sample(sample_id)
        if sample.answerable and sample.answer_type != "plot":
            results = [step.observation.result for step in reference_history(sample.reference)]
            found[sample.query] = (
                row,
                format_answer(sample.answer, derived_values(sample.answer, results)),
            )
    return found


def test_two_steps_of_grpo_call_tools_submit_answers_and_learn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Random weights call no tool: the first step trains on what they generate, the second on scripted turns."""
    from datasets import Dataset
    from transformers.utils import get_json_schema

    golds = rows_with_golds()
    schemas = [
        json.dumps(get_json_schema(getattr(Env(), name))) for name in ("plot", "count_objects")
    ]
    model, tokenizer = tiny_model([Env().reset(**row) for row, _ in golds.values()] + schemas)
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    config = trl.GRPOConfig(
        output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=4, num_generations=2, use_cpu=True,
        max_completion_length=8_000, logging_steps=1, report_to="none", save_strategy="no", bf16=False,
        gradient_checkpointing=False, learning_rate=1e-2, lr_scheduler_type="constant",
    )  # fmt: skip
    trainer = trl.GRPOTrainer(
        model=model, args=config, train_dataset=Dataset.from_list([row for row, _ in golds.values()]),
        processing_class=tokenizer, environment_factory=Env,
    )  # fmt: skip
    trainer.generation_config.max_new_tokens = 64
    generated, turn, seen = trainer._generate_single_turn, 0, []

    def generate(prompt_ids: Any, *others: Any, **named: Any) -> Any:
        nonlocal turn
        if trainer.state.global_step == 0:
            return generated(prompt_ids, *others, **named)
        texts = [tokenizer.decode(ids) for ids in prompt_ids]
        seen.extend(texts)
        replies = []
        for at_place, text in enumerate(texts):
            right = next(answer for query, (_, answer) in golds.items() if query in text)
            calls = [
                ("calculate", {"expression": "6 * 7"}),
                ("count_objects", {"image": "nowhere.jpg", "target": "apple"}),
                ("submit_answer", {"answer": "I know it."}),
                ("submit_answer", {"answer": right if at_place % 2 else "I do not know it."}),
            ]
            name, arguments = calls[turn] if turn < len(calls) else ("", {})
            call = (
                f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
            )
            replies.append(
                tokenizer.encode(f"{call if name else 'Done.'}{END}", add_special_tokens=False)
            )
        turn += 1
        return replies, None

    monkeypatch.setattr(trainer, "_generate_single_turn", generate)
    before = [each.detach().clone() for each in model.parameters()]
    trainer.train()
    first, second = [each for each in trainer.state.log_history if "rewards/Env/mean" in each]
    assert first["rewards/Env/mean"] == 0
    assert second["rewards/Env/mean"] == 0.5, "half of the answers are right"
    assert second["tools/call_frequency"] == 4
    assert second["tools/failure_frequency"] == 0, "an error is an observation, not an exception"
    assert any(
        '"value": 42' in each and "file_not_found" in each and "into this form" in each
        for each in seen
    )
    assert any("\nQuestion: " in each and "JSON Schema" in each for each in seen), (
        "questions and tools are in prompts"
    )
    assert any(not one.equal(other) for one, other in zip(before, model.parameters(), strict=True))
