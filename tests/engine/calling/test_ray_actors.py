"""The pool of actors with a GPU, on a stand-in for Ray whose GPUs come and go. With Ray: test_ray.py."""

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from agrotools.calling import ray_executor
from agrotools.calling.ray_executor import GpuActors
from agrotools.core import InfrastructureError

pytestmark = pytest.mark.unit


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class Actor:
    """Handle of an actor that is pending until it ``starts``, and is unavailable once it is ``lost``."""

    def __init__(self) -> None:
        self.waiting: list[Future[None]] = []
        self.running = self.lost = self.killed = False
        self.answer = SimpleNamespace(remote=lambda: SimpleNamespace(future=self._answered))

    def _answered(self) -> "Future[None]":
        reply: Future[None] = Future()
        if self.lost:
            reply.set_exception(RayError("the actor is unavailable"))
        elif self.running:
            reply.set_result(None)
        else:
            self.waiting.append(reply)
        return reply

    def start(self) -> None:
        self.running = True
        for reply in self.waiting:
            if not reply.done():
                reply.set_result(None)


class Ray:
    """Module ``ray``, as far as the pool uses it."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, gpus: int, *, others: int = 0) -> None:
        self.gpus, self.others = gpus, others
        self.actors: list[Actor] = []
        self.options: dict[str, Any] = {}

    def remote(self, _: type) -> Any:
        return SimpleNamespace(options=self._with_options)

    def _with_options(self, **options: Any) -> Any:
        self.options = options
        return SimpleNamespace(remote=self._create)

    def _create(self) -> Actor:
        self.actors.append(Actor())
        self.schedule()
        return self.actors[-1]

    def kill(self, actor: Actor, *, no_restart: bool) -> None:
        assert no_restart
        actor.killed = True
        self.schedule()

    def schedule(self) -> None:
        """Give free GPUs to the oldest pending actors."""
        for actor in [actor for actor in self.living if not actor.running]:
            if sum(other.running for other in self.living) + self.others < self.gpus:
                actor.start()

    @property
    def living(self) -> list[Actor]:
        return [actor for actor in self.actors if not actor.killed]

    async def count(self) -> int:
        return self.gpus


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_executor, "_LOOK_S", 0.002)
    monkeypatch.setattr(ray_executor, "_PAUSE_S", 0.001)


async def call(pool: GpuActors, *, until: asyncio.Event | None = None) -> Any:
    async with pool.actor() as actor:
        await (until.wait() if until else asyncio.sleep(0))
        return actor


async def test_actors_are_as_many_as_calls_and_gpus_or_none():
    ray = Ray(gpus=2)
    pool = GpuActors(ray, ray.count)
    assert ray.options == {"num_cpus": 0, "num_gpus": 1, "max_restarts": -1, "max_task_retries": 0}
    assert await call(pool) is await call(pool)
    assert len(ray.actors) == 1, "one call at a time needs one"
    assert len(set(await asyncio.gather(*(call(pool) for _ in range(20))))) == len(ray.actors) == 2
    pool.close()
    assert not ray.living
    ray = Ray(gpus=0)
    assert await call(GpuActors(ray, ray.count)) is None
    assert not ray.actors


@pytest.mark.parametrize(
    ("error", "is_kept"),
    [
        (RayTaskError(), True),
        (RayError(), False),
        (TimeoutError(), False),
        (asyncio.CancelledError(), False),
    ],
)
async def test_an_actor_is_kept_only_if_its_call_was_answered(error: BaseException, is_kept: bool):
    ray = Ray(gpus=1)
    pool = GpuActors(ray, ray.count)
    with pytest.raises(type(error)):
        async with pool.actor():
            raise error
    assert ray.actors[0].killed is not is_kept
    assert (await call(pool) is ray.actors[0]) is is_kept


async def test_an_idle_actor_that_was_lost_takes_no_call():
    ray = Ray(gpus=1)
    pool = GpuActors(ray, ray.count)
    (await call(pool)).lost = True
    assert await call(pool) is ray.actors[1]
    assert ray.living == ray.actors[1:]


async def test_no_displaced_actor_stays_pending():
    """A node is lost, and Ray would start its actor again as soon as there is a GPU."""
    ray = Ray(gpus=2)
    pool, end = GpuActors(ray, ray.count), asyncio.Event()
    busy = [asyncio.create_task(call(pool, until=end)) for _ in range(2)]
    await asyncio.sleep(0.02)
    ray.gpus, ray.actors[1].lost = 1, True
    waiting = [asyncio.create_task(call(pool)) for _ in range(3)]
    end.set()
    await asyncio.gather(*busy, *waiting)
    await call(pool)
    assert len(ray.living) == 1
    ray.gpus = 3
    await asyncio.gather(*(call(pool) for _ in range(9)))
    assert len(ray.living) == 3, "and it grows again"


@pytest.mark.parametrize("gpus", [2, 1])
async def test_a_call_does_not_wait_for_a_gpu_of_others_while_an_actor_is_idle(gpus: int):
    ray = Ray(gpus=2, others=1)
    pool, end = GpuActors(ray, ray.count), asyncio.Event()
    calls = [asyncio.create_task(call(pool, until=end)) for _ in range(3)]
    await asyncio.sleep(0.02)
    assert [actor.running for actor in ray.living] == [True, False]
    ray.gpus = gpus
    end.set()
    assert set(await asyncio.wait_for(asyncio.gather(*calls), 5)) == {ray.actors[0]}
    await call(pool)
    assert ray.living == ray.actors[:1], "none stays pending"


async def test_gpus_that_others_use_are_waited_for_and_given_up(monkeypatch: pytest.MonkeyPatch):
    ray = Ray(gpus=1, others=1)
    pool = GpuActors(ray, ray.count)
    waiting = asyncio.create_task(call(pool))
    await asyncio.sleep(0.02)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not ray.living
    monkeypatch.setattr(ray_executor, "_QUEUE_S", 0.3)
    calls = asyncio.gather(*(call(pool) for _ in range(9)), return_exceptions=True)
    given_up = await asyncio.wait_for(calls, 2)  # at the same time, not one after the other
    assert [type(each) for each in given_up] == [InfrastructureError] * 9
    assert not ray.living, "none stays pending"
    ray.others = 0
    assert (await call(pool)).running
