"""The training loop: cosine schedule, moving average of weights, a checkpoint each epoch that a run resumes from."""

import copy
import json
import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

Target = TypeVar("Target")
log = logging.getLogger("learning")


@dataclass(frozen=True)
class Schedule:
    """How long and how fast. ``sides``: (share of the epochs done, side of the training pictures from there on)."""

    epochs: int
    seed: int = 0
    batch: int = 64
    rate: float = 2e-3
    decay: float = 0.05
    warm_up: float = 0.05
    average: float = 0.995
    bfloat16: bool = True
    sides: tuple[tuple[float, int], ...] = ((0.0, 96), (0.5, 112), (0.8, 128))

    def side(self, epoch: int) -> int:
        return [side for start, side in self.sides if epoch >= start * self.epochs][-1]

    def rate_at(self, step: float) -> float:
        """Learning rate at ``step`` of 0..1: linear warm-up, then half a cosine (Loshchilov & Hutter 2017)."""
        if step < self.warm_up:
            return self.rate * (step / self.warm_up)
        return (
            self.rate * 0.5 * (1 + math.cos(math.pi * (step - self.warm_up) / (1 - self.warm_up)))
        )


def save(path: Path, state: dict[str, Any]) -> None:
    """Whole or not at all."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    partial.replace(path)


def average_into(slow: nn.Module, fast: nn.Module, keep: float) -> None:
    with torch.no_grad():
        for old, new in zip(slow.state_dict().values(), fast.state_dict().values(), strict=True):
            if old.dtype.is_floating_point:
                old.lerp_(new, 1 - keep)
            else:
                old.copy_(new)


def optimiser_of(model: nn.Module, schedule: Schedule) -> torch.optim.AdamW:
    """Weight decay for matrices and kernels alone (Loshchilov & Hutter 2019)."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    return torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": schedule.decay},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=schedule.rate,
    )


def seeded(schedule: Schedule, epoch: int) -> torch.Generator:
    """Each epoch draws from its own seed: a run that was stopped and resumed gives what an unbroken run gives."""
    torch.manual_seed(1000 * schedule.seed + epoch + 1)  # dropout
    return torch.Generator().manual_seed(1000 * schedule.seed + epoch + 1)


def learn(
    schedule: Schedule,
    model: nn.Module,
    steps: int,
    batches: Callable[[int, torch.Generator], Iterator[tuple[Tensor, Target]]],
    loss_of: Callable[[Any, Target], Tensor],
    watch: Callable[[nn.Module], dict[str, float]],
    folder: Path,
    settings: dict[str, Any],
    *,
    resume: bool,
    minutes_cpu: float | None = None,
    watch_every: int = 2,
) -> nn.Module:
    """The averaged weights after all epochs, or after ``minutes_cpu`` of processor time (a pilot).

    ``batches`` gives the ``steps`` batches of an epoch; ``loss_of`` takes the model's output and a batch's target.
    ``watch`` looks at the averaged model; its figures and the loss of each epoch go to ``log.jsonl`` in ``folder``.
    ``settings`` names plan and data: a checkpoint made under others is refused (``SystemExit``).
    """
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint, curve = folder / "checkpoint.pt", folder / "log.jsonl"
    settings = json.loads(json.dumps({"schedule": asdict(schedule), **settings}))
    model = model.to(memory_format=torch.channels_last)
    averaged = copy.deepcopy(model)
    optimiser = optimiser_of(model, schedule)
    first = 0
    if resume and checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        if state["settings"] != settings:
            raise SystemExit(
                f"{checkpoint} is of another plan or pool: give another --work, or drop --resume"
            )
        model.load_state_dict(state["model"])
        averaged.load_state_dict(state["averaged"])
        optimiser.load_state_dict(state["optimiser"])
        first = state["epoch"]
        log.info("resumed after epoch %d of %d", first, schedule.epochs)
    else:
        curve.unlink(missing_ok=True)
    began = time.process_time()
    for epoch in range(first, schedule.epochs):
        generator = seeded(schedule, epoch)
        model.train()
        total, rate, started = 0.0, 0.0, (time.time(), time.process_time())
        for step, (images, target) in enumerate(batches(epoch, generator)):
            rate = schedule.rate_at((epoch + step / steps) / schedule.epochs)
            for group in optimiser.param_groups:
                group["lr"] = rate
            with torch.autocast("cpu", torch.bfloat16, enabled=schedule.bfloat16):
                output = model(images.to(memory_format=torch.channels_last))
            loss = loss_of(output, target)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
            done = epoch * steps + step + 1
            average_into(averaged, model, min(schedule.average, 1 - 10 / (10 + done)))
            total += loss.item() / steps
        entry: dict[str, float] = {
            "epoch": epoch + 1,
            "loss": round(total, 4),
            "side": schedule.side(epoch),
            "rate": round(rate, 6),
            "minutes": round((time.time() - started[0]) / 60, 2),
            "cpu_minutes": round((time.process_time() - started[1]) / 60, 2),
        }
        enough = minutes_cpu is not None and time.process_time() - began > 60 * minutes_cpu
        if enough or (epoch + 1) % watch_every == 0 or epoch + 1 == schedule.epochs:
            entry |= {key: round(value, 4) for key, value in watch(averaged).items()}
        with curve.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        log.info("%s", entry)
        save(
            checkpoint,
            {
                "settings": settings,
                "epoch": epoch + 1,
                "model": model.state_dict(),
                "averaged": averaged.state_dict(),
                "optimiser": optimiser.state_dict(),
            },
        )
        if enough:
            log.info("stopped after %.1f minutes of processor time, as asked", minutes_cpu)
            break
    return averaged
