"""``agrotools_build.Env`` in TRL as it is, and ``examples/grpo.py``; needs ``python tests/environments.py trl``."""

import csv
import json
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agrotools_build import Env, PictureEnv, env_rows

trl = pytest.importorskip("trl", reason="needs TRL: python tests/environments.py trl")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

END = "<|im_end|>"


def tiny_tokenizer(texts: Sequence[str], template: str, marks: Sequence[str] = ()) -> Any:
    """Return a tokenizer with a chat template of TRL, and with marks that are one token each."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer, backend.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    backend.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=1_500,
            special_tokens=[END, "<|pad|>", *marks],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    templates = Path(trl.__file__).with_name("chat_templates")
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token=END, pad_token="<|pad|>", padding_side="left",
        chat_template=templates.joinpath(template).read_text(),
    )  # fmt: skip


TINY = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 65_536,
}  # fmt: skip
"""Sizes of a language model of random weights."""


def tiny_model(texts: Sequence[str]) -> tuple[Any, Any]:
    """Return a language model of random weights, and a tokenizer with the chat template of Qwen3."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = tiny_tokenizer(texts, "qwen3.jinja")
    config = Qwen3Config(
        **TINY, vocab_size=len(tokenizer), tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    return Qwen3ForCausalLM(config), tokenizer


def tiny_model_that_sees(texts: Sequence[str]) -> tuple[Any, Any]:
    """Return a model for texts and pictures of random weights, and its processor: those of Qwen3-VL."""
    from transformers import (
        Qwen2VLImageProcessor,
        Qwen3VLConfig,
        Qwen3VLForConditionalGeneration,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    marks = ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>", "<|video_pad|>"]
    tokenizer = tiny_tokenizer(texts, "qwen3_vl.jinja", marks)
    start, image, end, video = tokenizer.convert_tokens_to_ids(marks)
    sizes = {"shortest_edge": 32**2, "longest_edge": 64**2}  # at most four tokens a picture
    processor = Qwen3VLProcessor(
        Qwen2VLImageProcessor(patch_size=16, merge_size=2, size=sizes), tokenizer, Qwen3VLVideoProcessor(),
        chat_template=tokenizer.chat_template,
    )  # fmt: skip
    config = Qwen3VLConfig(
        text_config={
            **TINY, "vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000, "mrope_section": [2, 1, 1]},
        },
        vision_config={
            "depth": 1, "hidden_size": 16, "intermediate_size": 32, "num_heads": 2, "patch_size": 16,
            "out_hidden_size": TINY["hidden_size"], "num_position_embeddings": 16, "deepstack_visual_indexes": [0],
        },
        image_token_id=image, video_token_id=video, vision_start_token_id=start, vision_end_token_id=end,
    )  # fmt: skip
    return Qwen3VLForConditionalGeneration(config), processor


Calls = list[tuple[str, dict[str, Any]]]


class Script:
    """Writes calls, one a turn, then "Done.", in place of a model. All episodes have as many calls."""

    def __init__(
        self,
        trainer: Any,
        tokenizer: Any,
        calls_of: Callable[[int, str], Calls],
        first_step: int = 0,
    ) -> None:
        self.trainer, self.tokenizer, self.calls_of = trainer, tokenizer, calls_of
        self.first_step, self.generated = first_step, trainer._generate_single_turn
        self.turn = 0
        self.read: list[str] = []
        """Every text that the model was given."""
        self.written: dict[int, list[int]] = defaultdict(list)
        """Tokens of all turns of an episode, by its place in the batch."""

    def __call__(self, prompt_ids: Sequence[list[int]], *others: Any, **named: Any) -> Any:
        if self.trainer.state.global_step < self.first_step:
            return self.generated(prompt_ids, *others, **named)
        turns = []
        for place, ids in enumerate(prompt_ids):
            text = self.tokenizer.decode(ids)
            calls = self.calls_of(place, text)
            reply = "Done."
            if self.turn < len(calls):
                name, arguments = calls[self.turn]
                reply = f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
            turns.append(self.tokenizer.encode(f"{reply}{END}", add_special_tokens=False))
            self.read.append(text)
            self.written[place] += turns[-1]
        self.turn += 1
        return turns, None


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
        # A refusal of a question with a twin costs a point, and "I do not know it." is one.
        if sample.answerable and not sample.twin and sample.answer_type != "plot":
            results = [step.observation.result for step in reference_history(sample.reference)]
            found[sample.query] = (
                row,
                format_answer(sample.answer, derived_values(sample.answer, results)),
            )
    return found


@pytest.fixture(scope="module")
def golds() -> dict[str, tuple[dict[str, Any], str]]:
    return rows_with_golds()


@pytest.fixture(scope="module")
def texts(golds: dict[str, tuple[dict[str, Any], str]]) -> list[str]:
    """Texts that tokenizers are made of."""
    from transformers.utils import get_json_schema

    schemas = [
        json.dumps(get_json_schema(getattr(Env(), name))) for name in ("plot", "count_objects")
    ]
    return [Env().reset(**row) for row, _ in golds.values()] + schemas


@pytest.fixture(autouse=True)
def silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")


def config(folder: Path, **others: Any) -> Any:
    return trl.GRPOConfig(
        output_dir=str(folder), num_generations=2, use_cpu=True, max_completion_length=8_000, logging_steps=1,
        report_to="none", save_strategy="no", bf16=False, gradient_checkpointing=False, learning_rate=1e-2,
        lr_scheduler_type="constant", **others,
    )  # fmt: skip


def trainer_of(
    folder: Path,
    golds: dict[str, tuple[dict[str, Any], str]],
    texts: list[str],
    *,
    steps: int,
    episodes: int,
) -> tuple[Any, Any, Any]:
    """Return a trainer on all questions, ``episodes`` at a time, with its model of random weights and tokenizer."""
    from datasets import Dataset

    model, tokenizer = tiny_model(texts)
    trainer = trl.GRPOTrainer(
        model=model, args=config(folder, max_steps=steps, per_device_train_batch_size=episodes),
        train_dataset=Dataset.from_list([row for row, _ in golds.values()]),
        processing_class=tokenizer, environment_factory=Env,
    )  # fmt: skip
    return trainer, model, tokenizer


def calls_with_a_right_second(
    golds: dict[str, tuple[dict[str, Any], str]],
) -> Callable[[int, str], Calls]:
    """Return the calls of episodes of which every second one submits the right answer."""

    def calls_of(place: int, text: str) -> Calls:
        right = next(answer for query, (_, answer) in golds.items() if query in text)
        answer = right if place % 2 else "I do not know it."
        return [
            ("calculate", {"expression": "6 * 7"}),
            ("count_objects", {"image": "nowhere.jpg", "target": "apple"}),
            ("submit_answer", {"answer": "I know it."}),
            ("submit_answer", {"answer": answer}),
            ("submit_answer", {"answer": answer}),  # what is not whole is asked for once more
        ]

    return calls_of


def test_two_steps_of_grpo_call_tools_submit_answers_and_learn(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    golds: dict[str, tuple[dict[str, Any], str]],
    texts: list[str],
):
    """Random weights call no tool: the first step trains on what they generate, the second on scripted turns."""
    trainer, model, tokenizer = trainer_of(tmp_path, golds, texts, steps=2, episodes=4)
    trainer.generation_config.max_new_tokens = 64
    script = Script(trainer, tokenizer, calls_with_a_right_second(golds), first_step=1)
    monkeypatch.setattr(trainer, "_generate_single_turn", script)
    before = [each.detach().clone() for each in model.parameters()]
    trainer.train()
    first, second = [each for each in trainer.state.log_history if "rewards/Env/mean" in each]
    assert first["rewards/Env/mean"] == 0
    assert second["rewards/Env/mean"] == 0.5, "half of the answers are right"
    assert second["frac_reward_zero_std"] == 0, "rewards differ in each group"
    assert second["tools/call_frequency"] == 5
    assert second["tools/failure_frequency"] == 0, "an error is an observation, not an exception"
    assert any(
        '"value": 42' in each and "file_not_found" in each and "into this form" in each
        for each in script.read
    )
    assert any("\nQuestion: " in each and "JSON Schema" in each for each in script.read), (
        "questions and tools are in prompts"
    )
    assert any(not one.equal(other) for one, other in zip(before, model.parameters(), strict=True))


def test_the_loss_is_of_all_that_the_model_wrote_and_of_no_result_of_a_tool(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    golds: dict[str, tuple[dict[str, Any], str]],
    texts: list[str],
):

    trainer, _, tokenizer = trainer_of(tmp_path, golds, texts, steps=1, episodes=2)
    script = Script(trainer, tokenizer, calls_with_a_right_second(golds))
    monkeypatch.setattr(trainer, "_generate_single_turn", script)
    log_probabilities, inputs = loss_of(trainer, monkeypatch)
    trainer.train()

    (batch,), (log_probability,) = inputs, log_probabilities
    has_tokens = batch["completion_mask"].bool()
    in_loss = has_tokens & batch["tool_mask"].bool()
    written = [
        ids[mask].tolist() for ids, mask in zip(batch["completion_ids"], in_loss, strict=True)
    ]
    assert sorted(written) == sorted(script.written.values())
    for ids, mask in zip(batch["completion_ids"], has_tokens & ~in_loss, strict=True):
        results = tokenizer.decode(ids[mask])
        assert results.count("<tool_response>") == 5
        for part in ('"value": 42', "file_not_found", "into this form", "The answer is submitted"):
            assert part in results
    assert batch["advantages"].ne(0).all()
    assert log_probability.grad.ne(0).equal(in_loss), "where the gradient of the loss is"


def loss_of(
    trainer: Any, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return lists that get the logarithms of probabilities, and the inputs, of each loss that is computed."""
    score, compute = trainer._get_per_token_logps_and_entropies, trainer._compute_loss
    log_probabilities, inputs = [], []

    def kept_score(*arguments: Any, **named: Any) -> Any:
        scored = score(*arguments, **named)
        if scored[0].requires_grad:
            scored[0].retain_grad()
            log_probabilities.append(scored[0])
        return scored

    def kept_loss(model: Any, batch: dict[str, Any]) -> Any:
        inputs.append(batch)
        return compute(model, batch)

    monkeypatch.setattr(trainer, "_get_per_token_logps_and_entropies", kept_score)
    monkeypatch.setattr(trainer, "_compute_loss", kept_loss)
    return log_probabilities, inputs


CHART: dict[str, Any] = {"kind": "bar", "series": [{"name": "cover", "x": ["a", "b"], "y": [1, 2]}]}


@pytest.mark.parametrize("with_pictures_of_the_question", [False, True])
def test_pictures_of_results_reach_the_model_that_is_trained(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    golds: dict[str, tuple[dict[str, Any], str]],
    texts: list[str],
    with_pictures_of_the_question: bool,
):
    """Of two episodes the first draws a chart, the second calculates."""
    import torch
    from datasets import Dataset

    model, processor = tiny_model_that_sees(texts)
    rows = [
        row
        for row in env_rows("train", 12, images=with_pictures_of_the_question)
        if not with_pictures_of_the_question or row["images"]
    ][:1]
    trainer = trl.GRPOTrainer(
        model=model, args=config(tmp_path, max_steps=1, per_device_train_batch_size=2),
        train_dataset=Dataset.from_list(rows), processing_class=processor, environment_factory=PictureEnv,
    )  # fmt: skip

    def calls_of(place: int, text: str) -> Calls:
        first = ("calculate", {"expression": "6 * 7"}) if place else ("plot", CHART)
        return [first, ("submit_answer", {"answer": "1"}), ("submit_answer", {"answer": "1"})]

    monkeypatch.setattr(
        trainer, "_generate_single_turn", Script(trainer, processor.tokenizer, calls_of)
    )
    rewards = iter([1.0, 0.0])
    monkeypatch.setattr(PictureEnv, "get_reward", lambda env: next(rewards))
    log_probabilities, inputs = loss_of(trainer, monkeypatch)
    seen: list[Any] = []
    tower = model.model.visual
    tower.register_forward_pre_hook(
        lambda module, arguments, named: seen.append((*arguments, *named.values())[0]),
        with_kwargs=True,
    )
    before = tower.patch_embed.proj.weight.detach().clone()
    trainer.train()

    env = PictureEnv()
    env.reset(**rows[0])
    chart, _ = env.plot(**CHART)
    of_question = rows[0].get("images", [])
    (batch,), (log_probability,) = inputs, log_probabilities
    has_chart = [[chart["image"]], []]
    has_chart.sort(key=bool, reverse=bool(batch["advantages"][0] > 0))  # TRL shuffles episodes
    shown = [picture for drawn in has_chart for picture in [*of_question, *drawn]]
    patches = processor.image_processor(images=shown, return_tensors="pt")["pixel_values"]
    assert torch.equal(batch["pixel_values"], patches)
    assert torch.equal(seen[-1], patches), "of the pass that is learned from"
    grid = processor.image_processor(images=[chart["image"]], return_tensors="pt")["image_grid_thw"]
    tokens = int(grid.prod()) // processor.image_processor.merge_size**2
    of_picture = batch["completion_ids"].eq(processor.image_token_id)
    assert of_picture.sum(1).tolist() == [tokens * len(drawn) for drawn in has_chart]
    assert log_probability.grad[of_picture].eq(0).all()
    assert log_probability.grad.ne(0).any()
    assert not tower.patch_embed.proj.weight.equal(before)


KILLED = """
import os, random, runpy, signal, sys
from agrotools_build import Env

script, killed_at, *sys.argv[1:] = sys.argv[1:]
rewards = 0

def get_reward(env):
    global rewards
    rewards += 1
    if rewards == int(killed_at):
        os.kill(os.getpid(), signal.SIGKILL)
    return random.random()

Env.get_reward = get_reward
sys.argv[0] = script
runpy.run_path(script, run_name="__main__")
"""
"""Runs ``examples/grpo.py`` with random rewards, since random weights earn none, and kills itself at one of them."""


def test_a_training_that_was_killed_goes_on_as_if_it_was_not(tmp_path: Path, texts: list[str]):
    """Rows of the table, rewards and weights are the same to the bit, so data, optimizer and random numbers are."""
    from safetensors.torch import load_file

    model, tokenizer = tiny_model(texts)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    example = Path(__file__).resolve().parents[2] / "examples" / "grpo.py"

    def train(folder: str, killed_at: int, *options: str) -> int:
        command = [
            sys.executable,
            "-c",
            KILLED,
            str(example),
            str(killed_at),
            folder,
            "model",
            *options,
        ]
        command += [
            "--steps",
            "4",
            "--group",
            "2",
            "--rows",
            "12",
            "--choices",
            "--tools",
            "calculate",
        ]
        command += ["--tokens", "24", "--turn-tokens", "24", "--learning-rate", "0.01"]
        return subprocess.run(command, cwd=tmp_path, timeout=900, check=False).returncode

    assert train("whole", 0) == 0
    assert train("killed", 6) == -signal.SIGKILL, "at the last reward of the third step"
    assert steps_of(tmp_path / "killed") == steps_of(tmp_path / "whole")[:2]
    assert train("killed", 0, "--resume") == 0
    assert steps_of(tmp_path / "killed") == steps_of(tmp_path / "whole")
    assert [each["step"] for each in steps_of(tmp_path / "whole")] == ["1", "2", "3", "4"]
    whole, killed = (
        load_file(tmp_path / folder / "checkpoint-4" / "adapter_model.safetensors")
        for folder in ("whole", "killed")
    )
    assert whole.keys() == killed.keys()
    assert all(weights.equal(killed[name]) for name, weights in whole.items())
    assert any(weights.ne(0).any() for name, weights in whole.items() if "lora_B" in name), (
        "they are 0 before the first step"
    )


def steps_of(folder: Path) -> list[dict[str, str]]:
    """Return the rows of a table without the seconds."""
    with (folder / "steps.csv").open(newline="") as file:
        return [{**each, "seconds": ""} for each in csv.DictReader(file)]
