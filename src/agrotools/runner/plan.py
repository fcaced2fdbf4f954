"""What is left to do: pure set difference between what a run should hold and what it holds."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from agrotools.core import MODES, Mode, Sample

Key = tuple[str, str, int]
"""Mode, sample id, epoch: what identifies a record in its run."""


class WorkItem(NamedTuple):
    """One sample to run in one mode and epoch."""

    sample: Sample
    mode: Mode
    epoch: int

    @property
    def key(self) -> Key:
        return (self.mode, self.sample.id, self.epoch)


def work_items(samples: Sequence[Sample], modes: Iterable[Mode], epochs: int) -> list[WorkItem]:
    """All items of a run, epoch by epoch, so that a run stopped early is complete in its first epochs.

    In no-tool, samples that need raster processing or a figure are excluded; in step-by-step, those without a
    reference trajectory.
    """
    asked = set(modes)
    wanted: list[Mode] = [mode for mode in MODES if mode in asked]
    return [
        WorkItem(sample, mode, epoch)
        for epoch in range(epochs)
        for mode in wanted
        for sample in samples
        if runs_in(sample, mode)
    ]


def runs_in(sample: Sample, mode: Mode) -> bool:
    """Whether ``sample`` takes part in ``mode``."""
    if mode == "no-tool":
        return sample.no_tool_eligible
    if mode == "step-by-step":
        return sample.reference is not None
    return True


def remaining(items: Iterable[WorkItem], finished: AbstractSet[Key]) -> list[WorkItem]:
    """The items that have no finished record yet."""
    return [item for item in items if item.key not in finished]
