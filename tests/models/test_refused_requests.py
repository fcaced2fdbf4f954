"""What a refusal of one request means, with models that say what the wire would."""

from collections.abc import Sequence

import pytest

from agrotools.core import EndpointProblem, EndpointRefusal, InfrastructureError, ToolSpec
from agrotools.models import Completion, Message, ModelSettings, WireStats
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
        with pytest.raises(InfrastructureError, match=r"no: key \(other requests are answered\)") as refused:
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
