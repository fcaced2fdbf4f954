"""Estimate of the requests, tokens and cost of a run before it starts, and its requests for one sample.

Items of a plan come in; a :class:`CostEstimate` goes out, or the requests themselves, as the agent would send them.
No request is sent and no tool is run. Samples are drawn the same way each time, so that one plan has one estimate.
"""

import base64
import io
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agrotools.agents.images import pictures_among
from agrotools.agents.llm import LLMAgent, closing_message
from agrotools.agents.modes import (
    ModelAgent,
    reference_history,
    run_step_by_step,
    with_shown_observations,
)
from agrotools.core import BenchmarkError, Mode, Sample, SampleView, Step, ToolSpec, UsageError
from agrotools.core.texts import number_text
from agrotools.loading import Benchmark
from agrotools.models import Message, ModelSettings
from agrotools.models.base import image_urls, request_text
from agrotools.models.endpoint import ScriptedModel
from agrotools.models.metered import most_output_tokens
from agrotools.models.prices import IMAGE_TOKENS, Price
from agrotools.runner.execute import with_history
from agrotools.runner.plan import WorkItem, WorkItems, work_items
from agrotools.runner.policies import PolicySource
from agrotools.runner.prompts import Request, collect_requests

if TYPE_CHECKING:
    from agrotools.runner.build import RunPlan

RENDERED = 20
"""Number of samples whose requests are actually built, over all modes."""
COUNTED = 200
"""Number of samples per mode whose reference trajectories are counted."""

TURNS_WITHOUT_REFERENCE = 4
TYPICAL_OUTPUT_TOKENS = 150
TYPICAL_STEP_TOKENS = 400
"""Tokens that a turn (a call and its observation) adds to a conversation without a reference trajectory."""

BYTES_PER_TOKEN = 3.5
"""UTF-8 bytes of a request's JSON per token; tokenizers of cl100k, o200k, Claude and DeepSeek: 3.4 to 4.1."""

_FULL_PICTURE_PX = 1568 * 1568
_SMALLEST_PICTURE = 0.15


@dataclass(frozen=True)
class CostEstimate:
    """Estimated requests, tokens and cost. Low: replies of typical length; high: all replies at their token limit."""

    model: str
    requests: int
    input_tokens: int
    output_tokens: tuple[int, int]
    usd_low: float | None = None
    usd_high: float | None = None
    price: Price | None = None

    def __str__(self) -> str:
        low, high = self.output_tokens
        tokens = (
            f"{_tokens(self.input_tokens)} tokens in, {_range(_tokens(low), _tokens(high))} out"
        )
        text = f"about {self.requests:,} request{'' if self.requests == 1 else 's'}, {tokens}"
        if self.price is not None and self.price.is_free:
            is_local = self.price.source == "local"
            return f"{text}, free{' (an address of this machine)' if is_local else ''}"
        if self.usd_low is None or self.usd_high is None:
            return text
        return f"{text}: {_range(_usd(self.usd_low), _usd(self.usd_high))} USD ({self.model}: {self.price})"


async def estimate(
    items: WorkItems, benchmark: Benchmark, source: PolicySource, price: Price | None
) -> CostEstimate | None:
    """Estimate the cost of running ``items``; None if the policy does not use a model.

    The first and the last request of a few samples of each mode are built as the agent builds them (the last after the
    reference trajectory, or after steps of typical length if there is none) and extrapolated to all samples.
    """
    positions: dict[Mode, list[int]] = {}
    for part in items.parts:
        positions.setdefault(part.mode, []).extend(part.positions)
    requests = input_tokens = typical_tokens = most_tokens = usd_low = usd_high = 0.0
    for mode, of_mode in positions.items():
        agent = source.make(items.samples[of_mode[0]], mode, 0)
        if not isinstance(agent, ModelAgent):
            return None
        # A single-shot prompt contains the tools, although none is executed.
        view_mode = "end-to-end" if source.single_shot else mode
        shown: list[_Shown] = []
        for at in dict.fromkeys(_spread(of_mode, COUNTED)):  # a sample has a position in each epoch
            sample = items.samples[at]
            shown.append(_Shown(sample, benchmark.view(sample, view_mode)))
        expected = len(of_mode) * _total_requests(shown, agent) / len(shown)
        rendered = _spread(range(len(shown)), RENDERED // len(positions))
        per_request = await _tokens_per_request([shown[at] for at in rendered], agent, price)
        most = most_output_tokens(agent.settings)
        typical = min(TYPICAL_OUTPUT_TOKENS, most)
        requests += expected
        input_tokens += expected * per_request
        typical_tokens += expected * typical
        most_tokens += expected * most
        if price:
            usd_low += expected * price.usd(round(per_request), typical)
            usd_high += expected * price.usd(round(per_request), most)
    return CostEstimate(
        model=source.name,
        requests=round(requests),
        input_tokens=round(input_tokens),
        output_tokens=(round(typical_tokens), round(most_tokens)),
        usd_low=usd_low if price else None,
        usd_high=usd_high if price else None,
        price=price,
    )


class _Shown(NamedTuple):
    """A sample, and what an agent is shown of it."""

    sample: Sample
    view: SampleView


def _total_requests(shown: Sequence[_Shown], agent: ModelAgent) -> int:
    """Return the expected requests of all these samples, with those for the form of an answer."""
    return sum(
        expected_requests(each.sample, agent.mode) + closing_messages(each.view, agent)
        for each in shown
    )


async def _tokens_per_request(
    shown: Sequence[_Shown], agent: ModelAgent, price: Price | None
) -> float:
    """Return the mean input tokens of the requests of these samples, which are built for it."""
    sizes = [await _tokens_of(each.sample, each.view, agent, price) for each in shown]
    requests = sum(of_sample for of_sample, _ in sizes)
    tokens = sum(of_sample for _, of_sample in sizes)
    return tokens / requests


def budget_warning(expected: CostEstimate, budget_usd: float | None, spent_usd: float) -> str:
    """Return a warning if the estimated cost exceeds what is left of the budget; empty otherwise."""
    if budget_usd is None or expected.usd_low is None or expected.usd_high is None:
        return ""
    if spent_usd + expected.usd_high <= budget_usd:
        return ""
    verb = "exceeds" if spent_usd + expected.usd_low > budget_usd else "may exceed"
    spent = f" ({number_text(spent_usd, 2)} USD spent so far)" if spent_usd else ""
    return f"the estimate {verb} the budget of {budget_usd:g} USD{spent}; the run stops when the budget is reached"


def expected_requests(sample: Sample, mode: Mode) -> int:
    """Return the estimated number of requests of a sample: the reference calls and the answer, without its form."""
    if mode == "no-tool":
        return 1
    return len(sample.reference.steps) + 1 if sample.reference else TURNS_WITHOUT_REFERENCE


def closing_messages(view: SampleView, agent: ModelAgent) -> int:
    """Return 1 if the agent asks for the form of its answer, else 0."""
    return int(isinstance(agent, LLMAgent) and bool(view.form))


def closing_request(view: SampleView, agent: ModelAgent, before: float) -> tuple[int, float]:
    """Return :func:`closing_messages` and their input tokens after a request of ``before`` tokens."""
    n = closing_messages(view, agent)
    return n, n * (before + len(closing_message(view).encode()) / BYTES_PER_TOKEN)


async def _tokens_of(
    sample: Sample, view: SampleView, agent: ModelAgent, price: Price | None
) -> tuple[int, float]:
    """Return requests and input tokens of one sample, assuming that prompts grow linearly from first to last."""
    turns = expected_requests(sample, agent.mode)
    history: Sequence[Step] = ()
    if turns > 1 and (reference := with_shown_observations(sample).reference):
        with suppress(
            BenchmarkError
        ):  # some steps lack a recorded observation, which end-to-end does not need
            history = reference_history(reference)
    first = last = await request_tokens(view, (), agent, price)
    if turns > 1:
        typical = first + TYPICAL_STEP_TOKENS * (turns - 1)
        last = await request_tokens(view, history, agent, price) if history else typical
    closing, tokens = closing_request(view, agent, last)
    return turns + closing, turns * (first + last) / 2 + tokens


async def request_tokens(
    view: SampleView, history: Sequence[Step], agent: ModelAgent, price: Price | None
) -> float:
    """Return the input tokens of the request that an agent sends after ``history``.

    Pictures that are not made yet are counted by their size.
    """
    size = request_size(
        agent.model.name, *await agent.request_for(view, history), agent.settings, price
    )[1]
    shares = _shares_later(view) if getattr(agent, "images", False) else 0.0
    if getattr(agent, "tool_images", ""):
        # They are not made yet either, and so small that the smallest count holds.
        shares += _SMALLEST_PICTURE * sum(map(_pictures_of, history))
    return size + shares * (price.image_tokens if price else IMAGE_TOKENS)[0]


def _pictures_of(step: Step) -> int:
    """Return the number of pictures that a step shows to a model."""
    return len(pictures_among(step.observation.artifacts)) if step.observation else 0


def _shares_later(view: SampleView) -> float:
    later = [file for file in view.files if not Path(file.path).exists()]
    return sum(
        _share(file.width_px, file.height_px) for file in later if file.width_px and file.height_px
    )


def request_size(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    settings: ModelSettings,
    price: Price | None,
) -> tuple[int, float]:
    """Return the characters of a request's JSON without its images, and its tokens with them."""
    text, full = (
        request_text(model, messages, tools, settings),
        price.image_tokens[0] if price else IMAGE_TOKENS[0],
    )
    pictures = sum(full * _share_of_full_picture(url) for url in image_urls(messages))
    return len(text.decode()), len(text) / BYTES_PER_TOKEN + pictures


PREVIEWED = ScriptedModel(
    lambda _messages, _tools, _settings: "(answer of the model,\nin its own words)",
    name="the model",
)
"""Model of a preview, which only says that it answers."""


def items_of(plan: "RunPlan", sample: str) -> list[WorkItem]:
    """Return a sample in each mode of the run; if none was asked for, in end-to-end or else the first.

    Raises:
        UsageError: the sample is not run in these modes.
    """
    benchmark, source, modes = plan.benchmark, plan.source, plan.manifest.modes
    items = [
        *work_items(
            benchmark.samples, source.modes, 1, single_shot=source.single_shot, only=[sample]
        )
    ]
    if chosen := [item for item in items if item.mode in modes]:
        one = [each for each in chosen if each.mode == "end-to-end"] or chosen[:1]
        return chosen if "mode" in plan.config.run.model_fields_set else one
    able = ", ".join(item.mode for item in items if item.mode in benchmark.modes)
    raise UsageError(f"{sample} is not run in {' or '.join(modes)}", hint=f"--mode {able}")


async def requests_of(
    plan: "RunPlan", item: WorkItem
) -> tuple[list[Request], list[tuple[int, int]]]:
    """Return requests for a sample, and of each the characters of its JSON without images and its estimated tokens.

    They are the first request and, if the agent asks for the answer form after an answer, that one; in step-by-step
    all, because the reference is their history.
    """
    source = plan.source
    sample = plan.benchmark.prepare(with_history(item, source))
    view = plan.benchmark.view(sample, "end-to-end" if source.single_shot else item.mode)
    agent, requests = source.make(sample, item.mode, 0), collect_requests()
    if item.mode == "step-by-step" and sample.reference is not None:
        await run_step_by_step(agent, view, sample.reference)
    else:
        await agent.act(view, ())
    sizes = (
        request_size(PREVIEWED.name, *request, plan.config.model.settings, None)
        for request in requests
    )
    return requests, [(size, round(tokens)) for size, tokens in sizes]


def _share_of_full_picture(url: str) -> float:
    """Return the size of an image as a share of the largest size sent; endpoints have a minimum that they count."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as picture:
            return _share(picture.width, picture.height)
    except (OSError, ValueError):
        return 1.0


def _share(width_px: int, height_px: int) -> float:
    return min(1.0, max(width_px * height_px / _FULL_PICTURE_PX, _SMALLEST_PICTURE))


def _spread(positions: Sequence[int], most: int) -> list[int]:
    """Return at most ``most`` of ``positions``, always the same ones.

    They are drawn at random, because even steps could hit the same templates of a benchmark again and again.
    """
    if len(positions) <= most:
        return list(positions)
    return [
        positions[at]
        for at in sorted(random.Random(len(positions)).sample(range(len(positions)), most))
    ]


def _tokens(count: float) -> str:
    return (
        f"{number_text(count / 1e6, 2)} M"
        if count >= 100_000
        else f"{max(count, 1000) / 1000:.0f} k"
        if count
        else "0"
    )


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _usd(amount: float) -> str:
    return f"{amount:.2f}" if amount >= 0.01 or not amount else f"{amount:.1g}"
