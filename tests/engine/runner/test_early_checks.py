"""Endpoints are asked once while something else takes long, and not by what shows its progress."""

import asyncio
from typing import Any

import pytest

from agrotools.core import AgrotoolsError, EndpointRefusal
from agrotools.models import Endpoint
from agrotools.runner import early_checks
from agrotools.runner.config import EvalConfig
from agrotools.runner.early_checks import EndpointCheck

HERE: dict[str, Any] = {"base_url": "http://127.0.0.1:1/v1"}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happened, in order: the models that were asked, and the steps that were shown."""
    order: list[str] = []

    async def check_endpoint(endpoint: Endpoint, _: object) -> None:
        order.append(endpoint.model)
        if endpoint.model == "refused":
            raise EndpointRefusal("the key is refused", problem="key")

    monkeypatch.setattr("agrotools.models.probe.check_endpoint", check_endpoint)
    monkeypatch.setattr(early_checks, "_LONG_LOADING_S", 0.0)
    return order


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("baseline:plannr", "unknown baseline 'plannr'"),
        ("replay:nowhere", "nowhere is not a run folder"),
        ("scripted:none.toml", "cannot read the script none.toml"),
        pytest.param(
            "python:no_such_module:solve",
            "there is no module 'no_such_module'",
            marks=pytest.mark.process,
        ),
    ],
)
def test_a_name_that_is_none_is_said_before_the_benchmark_is_loaded(model: str, said: str) -> None:
    with pytest.raises(AgrotoolsError, match=said):
        EndpointCheck([EvalConfig.of(model=model)])


@pytest.mark.parametrize("name", ["oracle", "planner", "constant", "guess", "planted:0.5"])
def test_a_baseline_is_known_without_samples(name: str) -> None:
    assert early_checks.check_models([EvalConfig.of(model=f"baseline:{name}")]) == []


def test_each_endpoint_is_asked_once_before_a_step_is_shown(told: list[str]) -> None:
    configs = [EvalConfig.of(model=name, **HERE) for name in ("m1", "m2")]
    step = EndpointCheck(configs).between_steps(lambda stage, *_: told.append(stage))
    step("scenes", 1, 2)
    step("scenes", 2, 2)
    assert told == ["m2", "m1", "scenes", "scenes"]


def test_short_work_and_replies_that_may_be_cached_ask_nothing(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    EndpointCheck([EvalConfig.of(model="m1", cache="pilot", **HERE)]).when_due()
    monkeypatch.setattr(early_checks, "_LONG_LOADING_S", 60.0)
    EndpointCheck([EvalConfig.of(model="m1", **HERE)]).when_due()
    assert told == []


def test_a_refusal_ends_work_whose_steps_end_in_an_event_loop(told: list[str]) -> None:
    check = EndpointCheck([EvalConfig.of(model="refused", **HERE)])

    async def work() -> None:
        check.between_steps(lambda stage, *_: told.append(stage))("reference calls", 1, 2)

    with pytest.raises(EndpointRefusal, match="the key is refused"):
        asyncio.run(work())
    assert told == ["refused"]
