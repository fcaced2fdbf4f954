"""What a refusal of one request means, with models that say what the wire would."""

from collections.abc import Sequence

import pytest

from agrotools.core import (
    EndpointProblem,
    EndpointRefusal,
    EndpointUnreachable,
    InfrastructureError,
    ToolSpec,
)
from agrotools.models import Completion, Message, ModelSettings, WireSettings, WireStats
from agrotools.models.probe import FirstContact

SETTINGS = ModelSettings()


class Model:
    """Refuses what is asked under the names in ``refusals``."""

    name = "m"
    base_url = "http://127.0.0.1:1/v1"

    def __init__(self, refusals: dict[str, EndpointProblem]) -> None:
        self.refusals = refusals
        self.stats = WireStats()

    async def generate(
        self, messages: Sequence[Message], _tools: Sequence[ToolSpec], _settings: ModelSettings
    ) -> Completion:
        if problem := self.refusals.get(messages[-1].text):
            raise EndpointRefusal(f"no: {problem}", problem=problem, hint="change it")
        self.stats.replies += 1
        return Completion(text="yes")

    async def close(self) -> None:
        pass


async def ask(model: FirstContact, question: str) -> Completion:
    return await model.generate([Message.of("user", question)], (), SETTINGS)


async def test_a_request_that_alone_is_refused_is_a_fault_of_that_request() -> None:
    model = FirstContact(Model({"odd": "key"}))
    await ask(model, "fine")
    for _ in range(3):
        with pytest.raises(
            InfrastructureError, match=r"no: key \(other requests are answered\)"
        ) as refused:
            await ask(model, "odd")
        assert refused.value.problem == "key"
    assert (await ask(model, "fine")).text == "yes"


async def test_before_any_reply_two_different_requests_must_be_refused_alike() -> None:
    model = FirstContact(Model({"one": "key", "two": "request", "three": "key"}))
    for question in ("one", "one", "two"):
        with pytest.raises(InfrastructureError):
            await ask(model, question)
    with pytest.raises(EndpointRefusal, match="no: key"):
        await ask(model, "three")


async def test_an_account_without_credit_ends_a_run_whenever_it_is_told() -> None:
    model = FirstContact(Model({"odd": "credit"}))
    await ask(model, "fine")
    with pytest.raises(EndpointRefusal, match="no: credit"):
        await ask(model, "odd")


def test_tiny_requests_take_no_more_time_and_attempts_than_are_allowed() -> None:
    hasty = WireSettings(
        attempts=2, timeout_s=1.0, retry_wall_s=2.0, rpm=3, tpm=100, first_wait_s=0.1
    )
    assert hasty.impatient == hasty.model_copy(update={"rpm": None, "tpm": None})
    usual = WireSettings().impatient
    assert (usual.attempts, usual.timeout_s, usual.retry_wall_s) == (3, 60.0, 10.0)


@pytest.mark.parametrize(
    ("base_url", "hint"),
    [
        ("https://api.openai.com/v1", "check the network"),
        ("http://localhost:8000/v1", "start the server"),
    ],
)
async def test_the_hint_for_an_unreachable_address_depends_on_who_runs_the_server(
    base_url: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def closed(_base_url: str) -> bool:
        return False

    async def unreachable(*_: object) -> Completion:
        raise InfrastructureError("connection refused", problem="unreachable")

    monkeypatch.setattr("agrotools.models.probe._listens", closed)
    silent = Model({})
    silent.base_url = base_url
    monkeypatch.setattr(silent, "generate", unreachable)
    with pytest.raises(EndpointUnreachable, match=hint):
        await FirstContact(silent, lambda: silent).probe_endpoint(SETTINGS)
