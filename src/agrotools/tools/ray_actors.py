"""Actors of a Ray cluster that hold a GPU each, for calls with a ``learned`` back-end.

An actor keeps the model of its last call. It is dropped, and another one started, after the first call that it does not
answer. Its constructor takes no arguments, because those in the object store may be gone when Ray starts it again
(ray#53727).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from agrotools.core import InfrastructureError
from agrotools.tools.ray_node import CallRunner

_START_S = 600.0
"""Seconds that an actor may wait for a GPU that other users of the cluster occupy."""
_ANSWER_S = 60.0
"""Seconds within which an idle actor shows that it is still there."""
_LOOK_S = 1.0


class GpuActors:
    """Pool of actors, at most one for each GPU that the cluster has at the time.

    Args:
        ray: the module.
        count_gpus: function that returns the number of GPUs of the cluster as it is now.
    """

    def __init__(self, ray: Any, count_gpus: Callable[[], Awaitable[int]]) -> None:
        self._ray, self._count_gpus = ray, count_gpus
        # It takes no CPU while it is idle, because calls of other tools wait for those.
        self._class = ray.remote(CallRunner).options(num_cpus=0, num_gpus=1, max_restarts=-1, max_task_retries=0)
        self._actors: set[Any] = set()
        """All actors: idle, busy, and those that have not answered yet."""
        self._idle: list[Any] = []
        self._starting: dict[Any, asyncio.Task[None]] = {}
        self._waiting = 0
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def actor(self) -> AsyncIterator[Any]:
        """Provide an idle actor, or None if the cluster has no GPU. If the block fails, the actor is dropped.
        InfrastructureError: none could be started for :data:`_START_S`."""
        self._waiting += 1
        try:
            actor = await self._take()
        finally:
            self._waiting -= 1
        try:
            yield actor
        except self._ray.exceptions.RayTaskError:  # the call failed, not the actor
            self._add_idle(actor)
            raise
        except BaseException:
            self._drop(actor)
            raise
        self._add_idle(actor)

    def close(self) -> None:
        """End all actors."""
        for actor in [*self._actors]:
            self._drop(actor)

    async def _take(self) -> Any:
        began = time.monotonic()
        while gpus := await self._count_gpus():
            spare = [*self._starting, *self._idle][: max(0, len(self._actors) - gpus)]
            for actor in spare:  # GPUs were lost: a displaced actor would stay pending and take the next one
                self._drop(actor)
            if self._idle:
                actor = self._idle.pop()
                if await self._answers(actor, _ANSWER_S):
                    return actor
                continue
            if len(self._starting) < self._waiting and len(self._actors) < gpus:
                actor = self._class.remote()
                self._actors.add(actor)
                self._starting[actor] = asyncio.create_task(self._start(actor))
            if len(self._actors) > len(self._starting):
                began = time.monotonic()  # one of ours is busy, and will be idle
            elif time.monotonic() - began > _START_S:
                raise InfrastructureError("no GPU of the Ray cluster is free", hint="ray status shows who uses them")
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _LOOK_S)
        return None

    async def _start(self, actor: Any) -> None:
        if await self._answers(actor, _START_S):
            del self._starting[actor]
            self._add_idle(actor)

    async def _answers(self, actor: Any, limit_s: float) -> bool:
        """Return True if the actor answers; else it is dropped."""
        try:
            await asyncio.wait_for(asyncio.wrap_future(actor.answer.remote().future()), limit_s)
        except BaseException as error:
            self._drop(actor)
            if isinstance(error, (self._ray.exceptions.RayError, TimeoutError)):
                return False
            raise
        return True

    def _add_idle(self, actor: Any) -> None:
        if actor in self._actors:
            self._idle.append(actor)
        self._changed.set()

    def _drop(self, actor: Any) -> None:
        self._actors.discard(actor)
        if actor in self._idle:
            self._idle.remove(actor)
        if task := self._starting.pop(actor, None):
            task.cancel()
        if actor is not None:
            with suppress(Exception):  # Ray may be gone
                self._ray.kill(actor, no_restart=True)
        self._changed.set()
