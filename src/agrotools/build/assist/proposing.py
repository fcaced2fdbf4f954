"""Questions that a model proposes from files, the facts known about them, and the tools; a person reviews each.

ThinkGeo (section 3.3) and Agent-X (section 3.2) begin with such drafts. A proposal is a question, the calls that answer
it, and a formula over their results. The calls are run, so the answer follows from what the tools return and from no
annotation. Proposals are written to a folder of their own with ``proposed`` in its metadata. ``agrotools eval`` refuses
such a folder, and ``agrotools review --apply`` takes only the accepted ones into a benchmark.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from agrotools.agents.images import file_parts
from agrotools.agents.llm import building_prompt_hash, render
from agrotools.benchmarks import Benchmark, load_folder
from agrotools.benchmarks.leaks import check_leaks
from agrotools.benchmarks.sample_checks import SampleUnderCheck, check_answer, check_reference
from agrotools.build.export import copy_benchmark, copy_files
from agrotools.build.references import ChainBroken, PlannedCall, record_reference
from agrotools.core import (
    FAMILY_OF_TASK_TYPE,
    AgrotoolsError,
    Arguments,
    BooleanSlot,
    ExactSlot,
    FrozenModel,
    Sample,
    Slot,
    ToleranceSlot,
)
from agrotools.core.base import Progress, no_progress
from agrotools.formats.writing import canary_of
from agrotools.models import Message, Model, ModelSettings, TextPart
from agrotools.models.endpoint import PricedModel
from agrotools.runner.auxiliary_model import ask_each, open_model
from agrotools.text.expressions import ExpressionError, evaluate_from
from agrotools.text.loose_json import parsed_values
from agrotools.tools import get_tool
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor

PROPOSED = "proposed"
"""Key of the metadata of a folder of proposals."""
QUESTIONS = 20
"""Default maximum number of proposals."""
_IN_REQUEST = 3
_MOST_CALLS = 6
_REL_TOL, _COUNT_TOL = 0.05, 0.5
_SETTINGS = ModelSettings(temperature=None)


class _Lenient(FrozenModel):
    model_config = ConfigDict(extra="ignore")


class _Call(_Lenient):
    tool: str
    arguments: Arguments


class _Answer(_Lenient):
    type: Literal["number", "boolean", "text"]
    label: Annotated[str, Field(min_length=1, max_length=200)]
    from_: Annotated[str, Field(alias="from")]
    unit: str | None = None


class Proposal(_Lenient):
    """A proposed question with the calls that answer it."""

    question: Annotated[str, Field(min_length=10, max_length=500, pattern=r"^[^\n]+$")]
    task_type: str
    calls: Annotated[tuple[_Call, ...], Field(min_length=1, max_length=_MOST_CALLS)]
    answer: _Answer


@dataclass
class ProposalResult:
    """Result of asking for proposals: those written to ``out`` (None if there are none), and those dropped by reason.

    ``stopped``: error that left some files without a reply.
    """

    model: str
    out: Path
    samples: list[Sample] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    stopped: AgrotoolsError | None = None


def propose_folder(
    folder: Path, helper: PricedModel, ledger: Path, most: int = QUESTIONS, progress: Progress = no_progress
) -> ProposalResult:
    """Ask for at most ``most`` questions about files of the benchmark in ``folder``, and write them beside it.

    Replies are cached, so that the same command resumes without paying twice.

    Raises:
        BenchmarkError: ``folder`` is not a benchmark, or the folder of the proposals is not writable.
        InfrastructureError: no tool worker can be started.
    """
    benchmark = load_folder(folder)
    result = ProposalResult(helper.name, folder.with_name(f"{folder.name}-{PROPOSED}"))
    with open_model(helper, ledger) as model, TemporaryDirectory(prefix="agrotools-") as scratch:
        chosen = _chosen(benchmark.samples, -(-most // _IN_REQUEST))
        copy_files(benchmark.root, chosen, Path(scratch))
        asyncio.run(_propose(benchmark, chosen, model, Path(scratch), result, most, progress))
        if result.samples:
            facts: dict[str, JsonValue] = {
                "model": helper.name,
                "prompt": building_prompt_hash(proposing=True),
                "of": benchmark.content_hash,
                "dropped": {**result.dropped},
            }
            name = f"{benchmark.name}-{PROPOSED}"
            changes = {"name": name, "quick": (), "canary": canary_of(name, benchmark.version)}
            header = benchmark.header.model_copy(update={**changes, "metadata": {PROPOSED: facts}})
            copy_benchmark(Path(scratch), header, result.samples, result.out)
    return result


def _chosen(samples: Sequence[Sample], count: int) -> list[Sample]:
    """Return the first sample of each set of files, at most ``count`` of them, evenly spread over the benchmark."""
    first = list(
        {tuple(sorted(file.path for file in one.files)): one for one in reversed(samples) if one.files}.values()
    )
    first.reverse()
    return [first[place * len(first) // count] for place in range(count)] if len(first) > count else first


async def _propose(
    benchmark: Benchmark,
    chosen: Sequence[Sample],
    model: Model,
    root: Path,
    result: ProposalResult,
    most: int,
    progress: Progress,
) -> None:
    """Ask about the files of each chosen sample, then turn the proposals into samples, in the order of the samples."""
    replies: dict[str, str] = {}
    fields = _returned_fields(benchmark.samples)

    async def ask(sample: Sample) -> None:
        reply = await model.generate(await _request(benchmark, sample, fields), (), _SETTINGS)
        replies[sample.id] = reply.text
        progress("proposals", len(replies), len(chosen))

    try:
        result.stopped = (await ask_each(chosen, ask, model)).error
    finally:
        await model.close()
    queries = {_plain(sample.query) for sample in benchmark.samples}
    async with ToolExecutor(workers=2, timeout_s=300, cache=ResultCache()) as executor:
        for source in chosen:
            for proposal in _proposals(replies.get(source.id), result.dropped):
                if len(result.samples) == most:
                    return
                if _plain(proposal.question) in queries:
                    result.dropped["repeats a question"] += 1
                    continue
                queries.add(_plain(proposal.question))
                try:
                    sample = await _sample(proposal, source, root, executor, len(result.samples) + 1)
                except ChainBroken as broken:
                    result.dropped[broken.reason] += 1
                    continue
                at = SampleUnderCheck(sample, root, benchmark.header)
                remarks = (one for check in (check_reference, check_answer, check_leaks) for one in check(at))
                if remark := next(remarks, None):
                    result.dropped[remark[0].replace("_", " ")] += 1
                else:
                    result.samples.append(sample)


async def _request(benchmark: Benchmark, sample: Sample, fields: dict[str, str]) -> list[Message]:
    tools = [get_tool(name).spec.offered() for name in benchmark.toolset]
    paths = {file.path for file in sample.files}
    task_types = ", ".join(sorted({one.task_type for one in benchmark.samples}))
    asked = [one.query for one in benchmark.samples if paths & {file.path for file in one.files}]
    request = {"tools": tools, "fields": fields, "task_types": task_types, "asked": asked, "count": _IN_REQUEST}
    text = render("building/propose", **request)
    images = await asyncio.to_thread(file_parts, benchmark.view(sample, "end-to-end").files)
    heading = TextPart(render("files", count=len(sample.files)))
    return [
        Message.of("system", render("building/propose_system")),
        Message(role="user", content=(heading, *images, TextPart(text))),
    ]


def _returned_fields(samples: Sequence[Sample]) -> dict[str, str]:
    """Return names of the fields that tools return, by tool, as seen in the references of the benchmark."""
    fields: dict[str, dict[str, None]] = {}
    for step in (step for sample in samples if sample.reference for step in sample.reference.steps):
        if step.observation is not None and step.observation.result is not None:
            fields.setdefault(step.tool, {}).update(dict.fromkeys(step.observation.result))
    return {tool: ", ".join(names) for tool, names in fields.items()}


def _plain(query: str) -> str:
    return "".join(letter for letter in query.casefold() if letter.isalnum())


def _proposals(reply: str | None, dropped: Counter[str]) -> Iterator[Proposal]:
    """Yield the well-formed proposals of a reply; the others are counted."""
    if reply is None:
        return
    for value in parsed_values(reply):
        questions = value.get("questions") if isinstance(value, dict) else None
        if isinstance(questions, list):
            for one in questions:
                try:
                    yield Proposal.model_validate(one)
                except ValidationError:
                    dropped["malformed"] += 1
            return
    dropped["unreadable reply"] += 1


async def _sample(proposal: Proposal, source: Sample, root: Path, executor: ToolExecutor, number: int) -> Sample:
    """Return the sample of a proposal, with its calls run; ChainBroken if they fail or do not lead to an answer."""
    if unknown := [call.tool for call in proposal.calls if call.tool not in source.toolset]:
        raise ChainBroken("calls a tool that is not offered", f"{unknown[0]} is not offered")
    if proposal.task_type not in FAMILY_OF_TASK_TYPE:
        raise ChainBroken("of an unknown task type", f"{proposal.task_type} is not a task type")
    calls = [PlannedCall(call.tool, call.arguments) for call in proposal.calls]
    reference = await record_reference(calls, source.files, root, executor, source.toolset)
    try:
        results = [None if step.truth is None else dict(step.truth) for step in reference.steps]
        slot = _slot(proposal.answer, evaluate_from(proposal.answer.from_, results))
    except (ValueError, ExpressionError) as error:
        raise ChainBroken("no answer follows from its calls", str(error)) from error
    return Sample(
        id=f"{PROPOSED}-{number:03d}",
        query=proposal.question,
        files=source.files,
        family=FAMILY_OF_TASK_TYPE[proposal.task_type],
        task_type=proposal.task_type,
        answer_type="tolerance" if proposal.answer.type == "number" else "exact",
        template=PROPOSED,
        source=source.source,
        toolset=source.toolset,
        reference=reference,
        answer=(slot,),
        no_tool_eligible=all(file.kind == "image" for file in source.files),
        metadata={"answer_from": "results of tools", "files_of": source.id},
    )


def _slot(answer: _Answer, value: JsonValue) -> Slot:
    """Return the slot of an answer; ValueError if the value is not of the type that the proposal states."""
    common = {"name": "answer", "label": answer.label, "from": answer.from_}
    if answer.type == "boolean" and isinstance(value, bool):
        return BooleanSlot.model_validate({**common, "value": value})
    if answer.type == "text" and isinstance(value, str) and value.strip():
        return ExactSlot.model_validate({**common, "value": value})
    if answer.type == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        margin = {"abs_tol": _COUNT_TOL if isinstance(value, int) else 0.0, "rel_tol": _REL_TOL}
        return ToleranceSlot.model_validate({**common, "value": value, "unit": answer.unit, **margin})
    raise ValueError(f"the calls give {value!r}, which is no {answer.type}")
