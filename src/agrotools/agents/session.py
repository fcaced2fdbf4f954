"""One sample in work outside the runner: its files and the calls that were made, for the loops of other packages."""

import shutil
import tempfile
from collections.abc import Callable
from functools import cached_property
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agrotools.agents.images import result_picture_parts, shown_pictures
from agrotools.agents.llm import observation_text
from agrotools.agents.long_replies import kept_call, kept_text, storable_call
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.workspace import Workspace
from agrotools.core import (
    Observation,
    Sample,
    SampleView,
    Step,
    Termination,
    ToolCall,
    ToolOutcome,
    Trajectory,
)
from agrotools.core.frozen_model import from_valid
from agrotools.models import ContentPart

if TYPE_CHECKING:
    from PIL.Image import Image


class Session:
    """A sample and its view, both with files that are there, and the calls that were made so far, in order."""

    def __init__(self, sample: Sample, view: SampleView) -> None:
        self.sample, self.view = sample, view
        self.outcomes = list[tuple[ToolCall, ToolOutcome]]()
        self._remove: Callable[[], object] = lambda: None

    @cached_property
    def _workspace(self) -> Workspace:
        folder = Path(tempfile.mkdtemp(prefix="agrotools-"))
        self._remove = Finalize(
            self, shutil.rmtree, (folder, True), exitpriority=0
        )  # not in a forked process
        return Workspace(self.view.files, folder)

    async def call(self, executor: ToolExecutor, name: str, arguments: dict[str, Any]) -> str:
        """Execute a call and return the observation as a model sees it; InfrastructureError: no worker starts."""
        call, error = storable_call(from_valid(ToolCall, {"tool": name, "arguments": arguments}))
        outcome = ToolOutcome(Observation(error=error))
        if error is None:
            outcome = await executor.run(call, self._workspace, self.sample.toolset)
        call = kept_call(call)
        self.outcomes.append((call, outcome))
        return observation_text(
            Step(turn=0, kind="call", call=call, observation=outcome.observation)
        )

    @property
    def artifacts(self) -> Path:
        """Folder of the files that the calls write; it may not exist yet."""
        return self._workspace.artifacts

    def last_parts(self) -> tuple[ContentPart, ...]:
        """Return the pictures that the last call made as parts of a message, each after its caption."""
        call, outcome = self.outcomes[-1]
        return result_picture_parts(call.tool, outcome.observation.artifacts, self.artifacts)

    def last_pictures(self) -> "list[Image]":
        """Return the pictures (crops, overlays, charts) that the last call made as Pillow images, bounded in size."""
        _, outcome = self.outcomes[-1]
        pictures = shown_pictures(outcome.observation.artifacts, self.artifacts)
        return [picture.image for _, picture in pictures]

    def trajectory(self, answer: str, termination: Termination = "answered") -> Trajectory:
        """Return the trajectory of the calls that were made, one per turn, and an answer."""
        steps = [
            Step(turn=turn, kind="call", call=call, observation=outcome.observation)
            for turn, (call, outcome) in enumerate(self.outcomes)
        ]
        last = Step(turn=len(steps), kind="answer", text=kept_text(answer))
        return Trajectory(steps=(*steps, last), termination=termination)

    async def end_calls(self, executor: ToolExecutor) -> None:
        """End the sessions of the calls with tool servers; no call may follow."""
        await executor.end_sample(self._workspace)

    def close(self) -> None:
        """Remove the files that the calls wrote; no call may follow."""
        self._remove()
