"""From chosen questions to samples: their calls run with the real tools, their truth beside them."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from agrotools.construct.choosing import Chosen
from agrotools.construct.progress import Progress, no_progress
from agrotools.construct.references import record_reference
from agrotools.core import FAMILY_OF_TASK_TYPE, Sample
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor

T = TypeVar("T")


def build_samples(
    chosen: Sequence[Chosen],
    root: Path,
    *,
    prefix: str,
    source: str,
    toolset: tuple[str, ...],
    progress: Progress = no_progress,
    workers: int = 2,
    backends: Mapping[str, str] | None = None,
) -> list[Sample]:
    """Run the chain of every chosen question on the files in ``root`` and make the samples, ids ``prefix-001``...

    ``backends`` names the back-end of a tool where it is not the default.

    Results go into the user's result cache, where the first evaluation finds them.

    Raises:
        BenchmarkError: a chain fails on true values.
        InfrastructureError: no tool worker can be started.
    """

    async def build() -> list[Sample]:
        done = 0
        async with ToolExecutor(workers=workers, timeout_s=300, cache=ResultCache(), backends=backends) as executor:
            gate = asyncio.Semaphore(2 * workers)

            async def one(number: int, item: Chosen) -> Sample:
                nonlocal done
                async with gate:
                    sample = await _sample(f"{prefix}-{number:03d}", item, root, executor, source, toolset)
                done += 1
                progress("reference calls", done, len(chosen))
                return sample

            return await _gathered([one(number, item) for number, item in enumerate(chosen, start=1)])

    return run_apart(build)


async def _gathered(tasks: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order; the first failure cancels the rest and is raised as it is."""
    running = [asyncio.ensure_future(task) for task in tasks]
    try:
        return list(await asyncio.gather(*running))
    except BaseException:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        raise


async def _sample(
    sample_id: str, item: Chosen, root: Path, executor: ToolExecutor, source: str, toolset: tuple[str, ...]
) -> Sample:
    asked = item.asked
    reference = await record_reference(asked.calls, asked.files, root, executor, toolset)
    looks_enough = asked.answer_type != "plot" and all(file.kind == "image" for file in asked.files)
    return Sample(
        id=sample_id,
        query=item.query,
        files=asked.files,
        family=FAMILY_OF_TASK_TYPE[item.question.task_type],
        task_type=item.question.task_type,
        answer_type=asked.answer_type,
        template=item.question.template,
        source=source,
        toolset=toolset,
        reference=reference,
        answer=asked.slots,
        no_tool_eligible=looks_enough,
        metadata={"subject": item.subject.name, **item.subject.metadata},
    )


def run_apart(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end in a thread of its own, so that callers may or may not have an event loop."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(asyncio.run(make()))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="agrotools-build", daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
