"""Train a model on the environment with TRL's GRPO: one group of episodes a step, LoRA, a checkpoint after each step.

pip install "trl[peft]>=1.16,<2"         # and gguf, if MODEL is a GGUF file
python grpo.py FOLDER MODEL --steps 20
python grpo.py FOLDER MODEL --steps 40 --resume

FOLDER gets checkpoints and ``steps.csv``. The other options make a step short enough
for a CPU and a small model: ``python grpo.py --help``.
"""

import argparse
import csv
import inspect
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback, set_seed
from trl import GRPOConfig, GRPOTrainer

from agrotools_build import Env, env_rows

NO_TOOLS = {"reset", "get_reward", "submit_answer"}
TOOLS = {
    name for name, _ in inspect.getmembers(Env, inspect.isfunction) if name[0] != "_"
} - NO_TOOLS
COLUMNS = {
    "step": "step", "reward": "reward", "reward_std": "reward_std", "calls": "tools/call_frequency",
    "failures": "tools/failure_frequency", "generated_tokens": "completions/mean_length",
    "cut_off": "completions/clipped_ratio", "tokens": "num_tokens", "loss": "loss", "grad_norm": "grad_norm",
    "seconds": "step_time",
}  # fmt: skip
"""Columns of ``steps.csv``, and what TRL calls them. A step is one group, so ``reward_std`` is that within a group."""
JSON_BLOCKS: dict[str, Any] = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {
            "open_pattern": r"<tool_call>|```json", "close_pattern": r"(</tool_call>|```)\s*", "repeats": True,
            "content": "json", "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"},
    },
}  # fmt: skip
"""How calls of Qwen2.5-Coder are read: it writes most of them as a JSON block, not between the tags it is told."""


class Table(TrainerCallback):
    """Writes ``steps.csv`` anew after each step. A checkpoint has the steps before it, so that none is there twice."""

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        with Path(args.output_dir, "steps.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(COLUMNS)
            steps = [each for each in state.log_history if "reward" in each]
            table.writerows([each.get(name) for name in COLUMNS.values()] for each in steps)


def model_and_tokenizer(name: str) -> tuple[Any, Any]:
    """Load a model by name or folder, or from a GGUF file: its weights, unpacked, into a model that can be trained."""
    if not name.endswith(".gguf"):
        model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.bfloat16)
        return model, AutoTokenizer.from_pretrained(name)
    place = {"pretrained_model_name_or_path": Path(name).parent, "gguf_file": Path(name).name}
    packed = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.bfloat16)
    del packed.config.quantization_config  # a model that has it is refused by the trainer
    model = AutoModelForCausalLM.from_config(packed.config, dtype=torch.bfloat16)
    model.load_state_dict(packed.state_dict())
    return model, AutoTokenizer.from_pretrained(**place)


def with_tools(names: list[str]) -> type[Env]:
    """Return Env with these tools and ``submit_answer`` alone: the texts of all tools are 3,900 tokens of a prompt."""
    return type("Env", (Env,), dict.fromkeys(TOOLS - {*names}))


def asks_to_choose(row: dict[str, Any]) -> bool:
    """Return whether the form has an option or yes and no to choose, which a guess gets right now and then."""
    env = Env()
    env.reset(**row)
    form = env.submit_answer("")
    env.close()
    return "<one of" in form or "<yes or no>" in form


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("model")
    parser.add_argument(
        "--steps", type=int, default=20, help="number of steps in all, also with --resume"
    )
    parser.add_argument("--group", type=int, default=4, help="number of episodes of a question")
    parser.add_argument(
        "--rows", type=int, default=60, help="number of questions, drawn in about 3 s each"
    )
    parser.add_argument(
        "--choices", action="store_true", help="only questions with something to choose"
    )
    parser.add_argument("--tools", nargs="*", choices=sorted(TOOLS), default=sorted(TOOLS))
    parser.add_argument(
        "--calls", type=int, default=22, help="20 calls of tools and two submissions"
    )
    parser.add_argument("--tokens", type=int, default=8_000, help="of an episode after its prompt")
    parser.add_argument(
        "--turn-tokens", type=int, default=1_000, help="that the model may write at a time"
    )
    parser.add_argument("--learning-rate", type=float, default=1e-5)
    parser.add_argument(
        "--json-blocks", action="store_true", help="also read calls that are JSON blocks"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on from the last checkpoint of FOLDER"
    )
    args = parser.parse_args()

    rows = [row for row in env_rows("train", args.rows) if not args.choices or asks_to_choose(row)]
    model, tokenizer = model_and_tokenizer(args.model)
    if args.json_blocks:
        tokenizer.response_template = JSON_BLOCKS
    has_gpu = torch.cuda.is_available()
    config = GRPOConfig(
        output_dir=args.folder, max_steps=args.steps, num_generations=args.group, learning_rate=args.learning_rate,
        per_device_train_batch_size=1, gradient_accumulation_steps=args.group, lr_scheduler_type="constant",
        max_completion_length=args.tokens, max_tool_calling_iterations=args.calls, logging_steps=1, save_steps=1,
        save_total_limit=2, report_to="none",
        use_cpu=not has_gpu, bf16=has_gpu, gradient_checkpointing=has_gpu,
    )  # fmt: skip
    set_seed(config.seed)  # before the weights of LoRA are drawn
    trainer = GRPOTrainer(
        model=model, args=config, train_dataset=Dataset.from_list(rows), processing_class=tokenizer,
        environment_factory=with_tools(args.tools), callbacks=[Table()],
        peft_config=LoraConfig(r=16, lora_alpha=32),
    )  # fmt: skip
    trainer.generation_config.max_new_tokens = args.turn_tokens
    trainer.train(resume_from_checkpoint=args.resume)


if __name__ == "__main__":
    main()
