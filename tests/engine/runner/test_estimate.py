"""The estimate before a run: beside what the same run then really asks."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agrotools.agents.llm import LLMAgent
from agrotools.agents.modes import run_step_by_step, with_shown_observations
from agrotools.core import MODES, Mode, Protocol, Sample, ToolSpec
from agrotools.loading import Benchmark, load_benchmark
from agrotools.models import Message, ModelSettings
from agrotools.models.base import image_urls, request_text
from agrotools.models.endpoint import Endpoint, ScriptedModel
from agrotools.models.prices import Price
from agrotools.runner.estimate import BYTES_PER_TOKEN, TURNS_WITHOUT_REFERENCE, estimate
from agrotools.runner.plan import work_items
from agrotools.runner.policies import PolicySource, policy_source

pytestmark = pytest.mark.process

PRICE = Price(input_usd_per_million=2, output_usd_per_million=8, source="test", as_of="2026-01-02")
SETTINGS = ModelSettings(max_output_tokens=1000)


class Overheard:
    """A model that puts 1 or the first option into every line of the form and remembers how long its requests were."""

    def __init__(self) -> None:
        self.tokens: list[float] = []
        self.pictures = 0
        self.model = ScriptedModel(self._reply, name="overheard")

    def _reply(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> str:
        self.tokens.append(
            len(request_text("overheard", messages, tools, settings)) / BYTES_PER_TOKEN
        )
        self.pictures += len(image_urls(messages))
        asked, _, form = messages[-1].text.partition("answer gives no value):\n")
        lines = (
            form.partition("\nwhere\n")[0]
            if asked.startswith("Now copy the values")
            else "All of them are 1."
        )
        filled = re.sub(r"<(?:[^<>]*? of: ([^,>]*))?[^>]*>", lambda gap: gap[1] or "1", lines)
        return f"Final Answer: {filled}"

    def source(
        self, protocol: Protocol = "react", images: bool = False, settings: ModelSettings = SETTINGS
    ):
        agents = {
            mode: LLMAgent(self.model, mode, protocol, settings, images=images) for mode in MODES
        }
        return PolicySource(
            "overheard", False, MODES, lambda _sample, mode, _epoch: agents[mode], model=self.model
        )


@pytest.fixture(scope="module")
def benchmark(small_benchmark: Path) -> Benchmark:
    return load_benchmark(small_benchmark)


async def test_files_that_are_not_made_yet_are_counted_by_their_size(
    benchmark: Benchmark, tmp_path: Path
) -> None:
    later = replace(benchmark, root=tmp_path, make_files=lambda sample: sample)
    plan = work_items(benchmark.samples, ["end-to-end"], 1)
    there, absent = [
        await estimate(plan, each, Overheard().source(images=True), PRICE)
        for each in (benchmark, later)
    ]
    none = await estimate(plan, benchmark, Overheard().source(), PRICE)
    assert there is not None
    assert absent is not None
    assert none is not None
    assert absent.input_tokens == pytest.approx(there.input_tokens, rel=0.02)
    assert none.input_tokens < 0.95 * there.input_tokens


@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
@pytest.mark.parametrize("mode", ["no-tool", "step-by-step"])
async def test_the_estimate_is_what_the_run_then_asks(
    benchmark: Benchmark, mode: Mode, protocol: Protocol
) -> None:
    model = Overheard()
    source = model.source(protocol)
    plan = work_items(benchmark.samples, [mode], 2)
    foretold = await estimate(plan, benchmark, source, PRICE)
    assert foretold is not None
    for item in plan:
        sample = with_shown_observations(item.sample)
        view = benchmark.view(sample, mode)
        policy = source.make(sample, mode, item.epoch)
        if mode == "no-tool":
            await policy.act(view, ())
        else:
            assert sample.reference is not None
            await run_step_by_step(policy, view, sample.reference)
    assert foretold.requests == len(model.tokens)
    assert foretold.input_tokens == pytest.approx(sum(model.tokens), rel=0.05)
    assert foretold.output_tokens == (foretold.requests * 150, foretold.requests * 1000)
    each = sum(model.tokens) / len(model.tokens)
    assert foretold.usd_low == pytest.approx(
        foretold.requests * PRICE.usd(round(each), 150), rel=0.05
    )
    assert foretold.usd_high == pytest.approx(
        foretold.requests * PRICE.usd(round(each), 1000), rel=0.05
    )


async def test_modes_epochs_and_pictures_add_up(benchmark: Benchmark) -> None:
    model = Overheard()
    source, seeing = model.source(), model.source(images=True)
    single = [
        await estimate(work_items(benchmark.samples, [mode], 1), benchmark, source, PRICE)
        for mode in MODES
    ]
    every = await estimate(work_items(benchmark.samples, MODES, 1), benchmark, source, PRICE)
    thrice = await estimate(work_items(benchmark.samples, MODES, 3), benchmark, source, PRICE)
    shown = await estimate(work_items(benchmark.samples, MODES, 1), benchmark, seeing, PRICE)
    assert every is not None
    assert thrice is not None
    assert shown is not None
    assert every.requests == sum(each.requests for each in single if each)
    assert every.usd_high == pytest.approx(
        sum(each.usd_high or 0 for each in single if each), rel=0.05
    )
    assert thrice.requests == 3 * every.requests
    assert thrice.input_tokens == pytest.approx(3 * every.input_tokens, rel=0.05)
    assert (
        every.input_tokens + 100 * every.requests
        < shown.input_tokens
        < every.input_tokens + 6000 * every.requests
    )
    assert model.tokens == []  # Nothing was asked.


async def test_without_a_reference_a_few_turns_are_assumed(benchmark: Benchmark) -> None:
    bare = [sample.model_copy(update={"reference": None}) for sample in benchmark.samples]
    plan = work_items(bare, ["end-to-end"], 1)
    foretold = await estimate(plan, benchmark, Overheard().source(), PRICE)
    assert foretold is not None
    with_form = sum(bool(benchmark.view(sample, "end-to-end").form) for sample in bare)
    assert foretold.requests == TURNS_WITHOUT_REFERENCE * len(bare) + with_form
    unrecorded = [_unrecorded(sample) for sample in benchmark.samples]
    assert await estimate(
        work_items(unrecorded, ["end-to-end"], 1), benchmark, Overheard().source(), PRICE
    )


def _unrecorded(sample: Sample) -> Sample:
    assert sample.reference is not None
    steps = tuple(
        step.model_copy(update={"observation": None, "truth": None})
        for step in sample.reference.steps
    )
    return sample.model_copy(
        update={"reference": sample.reference.model_copy(update={"steps": steps})}
    )


async def test_replies_below_the_typical_length_are_one_figure(benchmark: Benchmark) -> None:
    source = Overheard().source(settings=ModelSettings(max_output_tokens=20))
    foretold = await estimate(
        work_items(benchmark.samples, ["no-tool"], 1), benchmark, source, PRICE
    )
    assert foretold is not None
    assert foretold.output_tokens == (foretold.requests * 20,) * 2
    assert re.search(r" tokens in, \d+ k out: [\d.]+ USD", str(foretold))


async def test_policies_without_a_model_cost_nothing_that_could_be_estimated(
    benchmark: Benchmark,
) -> None:
    plan = work_items(benchmark.samples, MODES, 1)
    assert (
        await estimate(
            plan, benchmark, policy_source(Endpoint("baseline:echo"), benchmark.samples), PRICE
        )
        is None
    )
