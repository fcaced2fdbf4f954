"""Training of a classifier: balanced draws, mixed pictures, smoothed labels, pictures of no class."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from nets.augment import Changes, augmented, mixed
from nets.learning import Schedule, learn
from nets.model import Classifier, Shape

WATCHED = 500


@dataclass(frozen=True)
class Plan(Schedule):
    """``balance`` 0 draws each picture once an epoch, 1 each class as often; ``unknown_share``: pictures of no class
    that join a batch, as a share of it."""

    smoothing: float = 0.05
    mix_share: float = 0.5
    mix_most: float = 0.4
    unknown_share: float = 0.125
    balance: float = 1.0
    shape: Shape = field(default_factory=Shape)
    changes: Changes = field(default_factory=Changes)


@dataclass(frozen=True)
class Known:
    """Pictures (n, 3, height, width) uint8 and classes (n,)."""

    pictures: Tensor
    classes: Tensor


def draw_epoch(classes: Tensor, balance: float, generator: torch.Generator) -> Tensor:
    count = len(classes)
    if balance == 0:
        return torch.randperm(count, generator=generator)
    weight = torch.bincount(classes).double().clamp(min=1).pow(-balance)[classes]
    return torch.multinomial(weight, count, replacement=True, generator=generator)


def cross_entropy(output: tuple[Tensor, Tensor], targets: Tensor) -> Tensor:
    """``targets``: shares of classes (n, k)."""
    return -(targets * functional.log_softmax(output[0].float(), 1)).sum(1).mean()


def batches_of(
    plan: Plan, count: int, known: Known, unknown: Tensor, epoch: int, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """Pictures of no class have even targets (outlier exposure; Hendrycks et al. 2019)."""
    side = plan.side(epoch)
    for places in draw_epoch(known.classes, plan.balance, generator).split(plan.batch):
        targets = functional.one_hot(known.classes[places], count).float()
        images = augmented(known.pictures[places], side, plan.changes, generator)
        if float(torch.rand(1, generator=generator)) < plan.mix_share:
            images, targets = mixed(images, targets, plan.mix_most, generator)
        targets = targets * (1 - plan.smoothing) + plan.smoothing / count
        if len(unknown):
            number = max(1, round(len(places) * plan.unknown_share))
            some = unknown[torch.randint(0, len(unknown), (number,), generator=generator)]
            images = torch.cat([images, augmented(some, side, plan.changes, generator)])
            targets = torch.cat([targets, torch.full((number, count), 1 / count)])
        yield images, targets


def predict(model: nn.Module, pictures: Tensor, batch: int = 64) -> Tensor:
    """Logits (n, classes) of uint8 pictures."""
    model.eval()
    with torch.inference_mode():
        return torch.cat([model(some.float().div_(255))[0] for some in pictures.split(batch)])


def some_of(known: Known, limit: int) -> Known:
    step = max(1, math.ceil(len(known.classes) / limit))
    return Known(known.pictures[::step], known.classes[::step])


def learn_classes(
    plan: Plan,
    classes: Sequence[str],
    known: Known,
    unknown: Tensor,
    watched: dict[str, Known],
    folder: Path,
    *,
    resume: bool,
    minutes_cpu: float | None,
) -> nn.Module:
    """The trained ``Classifier``. At most ``WATCHED`` pictures of each of ``watched`` are looked at on the way; nothing
    is chosen by them."""
    torch.manual_seed(plan.seed)
    looked_at = {name: some_of(some, WATCHED) for name, some in watched.items()}

    def watch(model: nn.Module) -> dict[str, float]:
        return {
            f"{name}_top1": float(
                (predict(model, some.pictures).argmax(1) == some.classes).float().mean()
            )
            for name, some in looked_at.items()
        }

    return learn(
        plan,
        Classifier(len(classes), plan.shape),
        math.ceil(len(known.classes) / plan.batch),
        lambda epoch, generator: batches_of(plan, len(classes), known, unknown, epoch, generator),
        cross_entropy,
        watch,
        folder,
        {
            "plan": asdict(plan),
            "classes": list(classes),
            "known": len(known.classes),
            "unknown": len(unknown),
        },
        resume=resume,
        minutes_cpu=minutes_cpu,
    )
