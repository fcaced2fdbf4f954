"""Samples (a question about files, with gold answers), actions and observations of policies, and records of both.

A reference to a value of an earlier step is ``steps[0].observation.crop_pct`` in an expression and ``{"$ref": ...,
"value": ...}`` in an argument.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Annotated, Any, Literal, NamedTuple, cast
from zlib import crc32

from pydantic import Field, JsonValue, PlainSerializer

from agrotools.core.errors import ErrorInfo
from agrotools.core.form_item import FormItem
from agrotools.core.frozen_model import FrozenModel
from agrotools.core.slot import Slot, is_derivable
from agrotools.core.taxonomy import AnswerType, DeclaredTool, FileKind, Mode, Termination

Arguments = dict[str, JsonValue]
CallSequence = tuple[tuple[str, Arguments], ...]
"""Tool calls in order: name and arguments, which may refer to the results of earlier calls."""


class Usage(FrozenModel):
    """Token counts reported by the endpoint; zero if it reports none."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: Annotated[int | None, Field(exclude_if=lambda count: count is None)] = None
    """Number of input tokens that came from the prompt cache of the server; None if it does not say."""
    cost_usd: Annotated[float | None, Field(exclude_if=lambda cost: cost is None)] = None
    """Cost in US dollars of an agent's requests; None if it is unknown. Costs of models are in the run's ledger."""


class Spending(NamedTuple):
    """Tokens and cost of a sample; None for what is unknown because an external agent did not report it."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    cached_input_tokens: int | None = None
    """None, too, if the server does not say."""


_LONGEST_RECEIVED = 2000


def _bounded(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    text = json.dumps(fields, ensure_ascii=False)
    return fields if len(text) <= _LONGEST_RECEIVED else {"cut": text[:_LONGEST_RECEIVED]}


class Reply(FrozenModel):
    """The model's raw reply from which an action was parsed, stored so that another parser can read it again."""

    text: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    first_token: dict[str, float] = {}
    """Probabilities of the most likely first tokens of the reply, if the endpoint reports them."""
    received: Annotated[
        dict[str, JsonValue], PlainSerializer(_bounded), Field(exclude_if=operator.not_)
    ] = {}
    """Message of the reply with all its fields, sent back in the same conversation. A record has the first 2,000
    characters of its JSON: ``text`` has the reasoning and the calls."""


class ToolCall(FrozenModel):
    """A tool's name and its arguments, exactly as written by the policy.

    For example ``ToolCall(tool="calculate", arguments={"expression": "2 + 3"})``.
    """

    tool: str
    arguments: Arguments = {}
    id: str | None = None

    def repeats(self, other: "ToolCall") -> bool:
        """Return True if both calls are equal but for their ids."""
        return (self.tool, self.arguments) == (other.tool, other.arguments)


class CallTools(FrozenModel):
    """Calls of one or more tools; several calls of one message run in order.

    For example ``CallTools(calls=(ToolCall(tool="calculate", arguments={"expression": "2 + 3"}),))``.
    """

    kind: Literal["call"] = "call"
    calls: Annotated[tuple[ToolCall, ...], Field(min_length=1)]
    thought: str = ""
    reply: Reply | None = None
    refused: ErrorInfo | None = None
    """Error that the calls return because the protocol does not allow them; None if they are allowed."""


class Answer(FrozenModel):
    """The final answer, as text: ``Answer(text="7 apples")``."""

    kind: Literal["answer"] = "answer"
    text: str
    thought: str = ""
    reply: Reply | None = None
    form_replies: tuple[Reply, ...] = ()
    """Replies to the closing messages, which ask for the answer form; ``text`` ends with the last one."""
    formless: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """True if an agent takes no closing message, so that its own words alone are scored."""


UNREAD_CALL = "the output calls a tool in markup that is not understood"
"""Beginning of the reason of outputs that hold a call which the parser of the server or of agrotools should know."""
UNREAD_ARGUMENTS = "the text of the arguments"
"""Beginning of the reason of calls whose arguments are no JSON object."""
UNREAD_CALLS = (UNREAD_CALL, UNREAD_ARGUMENTS)
"""Beginnings of the reasons of outputs with a call that is not read."""


class Unparseable(FrozenModel):
    """Output that is neither a call nor an answer, with the ``reason`` and a ``hint`` on how to repair it."""

    kind: Literal["unparseable"] = "unparseable"
    text: str
    reason: str
    hint: str = ""
    reply: Reply | None = None


class Halt(FrozenModel):
    """End of a sample without an answer, for a reason that counts as a result: length, context, filtered, timeout."""

    kind: Literal["halt"] = "halt"
    termination: Termination
    reason: str = ""
    reply: Reply | None = None


Action = Annotated[CallTools | Answer | Unparseable | Halt, Field(discriminator="kind")]
"""What a policy does next: ``CallTools(calls=(ToolCall(tool="calculate"),))``, ``Answer(text="7")``, or an ending."""


class Artifact(FrozenModel):
    """A file written by a tool. ``name`` is unique within the sample; the content is stored by ``sha256``."""

    name: str
    kind: Literal["overlay", "mask", "plot", "image", "table"]
    media_type: str
    sha256: str | None = None


class Observation(FrozenModel):
    """Response to a call as seen by a policy: a result or an error, and the files that the call wrote."""

    result: dict[str, JsonValue] | None = None
    error: ErrorInfo | None = None
    artifacts: tuple[Artifact, ...] = ()

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def empty(self) -> bool:
        """True if there is no result, no error and no artifact."""
        return not self.result and self.error is None and not self.artifacts


ResultSource = Literal["tool", "cache", "recording", "none"]
"""Source of the observation of a call: the tool that ran, the cache of results, the observation that the reference
recorded beforehand, or no tool at all, because the protocol did not allow the call."""


@dataclass(frozen=True)
class ToolOutcome:
    """Outcome of a tool call. ``log`` (tracebacks, prints) is for tool developers; policies never see it."""

    observation: Observation
    seconds: float = 0.0
    """Wall time of the tool itself, or of the look-up if the result came from the cache."""
    source: ResultSource = "tool"
    log: str = ""


class Step(FrozenModel):
    """One step of a policy: a call with its observation, an answer, or unparseable output with a repair hint.

    ``turn`` counts model messages from 0; calls of one message share it. Only the first step of a turn has ``reply``.
    A policy finds the result of its last call in ``history[-1].observation``.
    """

    turn: int
    kind: Literal["call", "answer", "unparseable"]
    call: ToolCall | None = None
    observation: Observation | None = None
    text: str = ""
    """The answer, or the output that cannot be parsed."""
    reason: str = ""
    """Reason why the output cannot be parsed, and the hint sent to the policy."""
    thought: str = ""
    reply: Reply | None = None
    form_replies: tuple[Reply, ...] = ()
    formless: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """Both as in :class:`Answer`."""
    seconds: float = 0.0
    """Wall time of the tool call, seconds."""
    cached: bool = False
    """This and the next two are the stored form of :attr:`source`: at most one of them is True."""
    recorded: bool = False
    """True if no tool was run: the observation is the recorded one of the reference."""
    refused: bool = False
    """True if no tool was run: the protocol did not allow the call, and the observation gives the reason."""

    @property
    def source(self) -> ResultSource:
        """Source of the observation of a call, from the three stored flags."""
        if self.refused:
            return "none"
        if self.recorded:
            return "recording"
        return "cache" if self.cached else "tool"


class Trajectory(FrozenModel):
    """Steps of a policy on one sample, and the reason why it ended."""

    steps: tuple[Step, ...] = ()
    termination: Termination
    reason: str = ""
    halted_by: Reply | None = None
    """Reply that caused a halt (length, filtered...). No step contains it, but its tokens are counted."""

    @property
    def answer(self) -> str | None:
        """The final answer; None if there is none, or if its form was asked for and is not given (``no_form``)."""
        return self.answer_text if self.termination != "no_form" else None

    @property
    def answer_text(self) -> str | None:
        """The text of the final answer, also without its form; None if there is none."""
        if (
            self.termination in ("answered", "no_form", "max_steps")
            and self.steps
            and self.steps[-1].kind == "answer"
        ):
            return self.steps[-1].text
        return None

    @property
    def calls(self) -> tuple[Step, ...]:
        return tuple([step for step in self.steps if step.kind == "call"])


class ReferenceStep(FrozenModel):
    """A call of the reference trajectory.

    ``arguments`` may contain ``{"$ref": "steps[0].observation.weed_pct", "value": 8.9}`` (reference and literal) for a
    value from an earlier step. Steps with the same ``group`` are independent of each other and may come in any order.
    ``truth`` is the result that a perfect tool would return, if the source provides it.
    """

    tool: str
    arguments: Arguments
    observation: Observation | None = None
    group: int | None = None
    truth: dict[str, JsonValue] | None = None
    thought: str = ""


class ReferenceTrajectory(FrozenModel):
    """The gold calls in written order. The answer step after them is implied."""

    steps: tuple[ReferenceStep, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(step.tool for step in self.steps)


FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]


class Intrinsics(FrozenModel):
    """Pinhole camera parameters in pixels of the original image."""

    fx_px: Annotated[float, Field(gt=0)]
    fy_px: Annotated[float, Field(gt=0)]
    cx_px: float
    cy_px: float


class SampleFile(FrozenModel):
    """A file of a sample. Policies and tools refer to it by ``name``; ``path`` is relative to the benchmark folder."""

    name: FileName
    path: str
    kind: FileKind
    sha256: str | None = None
    pixels: Annotated[str | None, Field(exclude_if=operator.not_)] = None
    """SHA-256 of the decoded pixels of a drawn file, whose bytes depend on the libraries that write it."""
    width_px: int | None = None
    height_px: int | None = None
    bands: tuple[str, ...] | None = None
    """Band names in file order, e.g. ``("B", "G", "R", "RE", "NIR")``."""
    gsd_m: Annotated[float | None, Field(gt=0)] = None
    """Ground sampling distance in metres per pixel."""
    crs: str | None = None
    intrinsics: Intrinsics | None = None
    depth_unit_mm: Annotated[float | None, Field(gt=0)] = None
    classes: dict[str, str] | None = None
    """Meaning by class index of a mask, e.g. ``{"1": "crop"}``."""
    note: str | None = None
    """Remark for the policy about the file, e.g. ``false colour: near infrared shown as green``."""

    @property
    def known_arguments(self) -> dict[str, JsonValue]:
        """Tool arguments known from the file's metadata, used if a call omits them.

        These are ``gsd_m``, ``depth_unit_mm``, ``fx_px`` to ``cy_px`` of the intrinsics, ``bands`` as band numbers
        (from 1) by name, and ``label_map`` as class numbers by meaning.
        """
        known: dict[str, JsonValue] = {"gsd_m": self.gsd_m, "depth_unit_mm": self.depth_unit_mm}
        if self.intrinsics is not None:
            known |= self.intrinsics.model_dump()
        if self.bands is not None:
            known["bands"] = {name: number for number, name in enumerate(self.bands, start=1)}
        if self.classes is not None:
            numbers = [
                (meaning, int(index))
                for index, meaning in self.classes.items()
                if index.isdecimal()
            ]
            known["label_map"] = {
                meaning: [number for each, number in numbers if each == meaning]
                for meaning in self.classes.values()
            }
        return {name: value for name, value in known.items() if value is not None}


class Sample(FrozenModel):
    """One question with its files and gold answers. Policies only ever see a :class:`SampleView`."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,119}$")]
    query: Annotated[str, Field(min_length=1)]
    files: tuple[SampleFile, ...]
    family: str
    task_type: str
    answer_type: AnswerType
    template: str
    source: str
    toolset: tuple[str, ...]
    declared: Annotated[tuple[DeclaredTool, ...], Field(exclude_if=operator.not_)] = ()
    """Tools of ``toolset`` that the files of the benchmark declare; they precede installed ones of that name."""
    reference: ReferenceTrajectory | None = None
    answer: Annotated[tuple[Slot, ...], Field(min_length=1)]
    no_tool_eligible: bool = True
    cluster: str | None = None
    """Id of the group of samples that share files or name the same cluster, directly or transitively.

    The loader replaces a stored name by the id of the group's first sample.
    """
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    groups: dict[str, str] = Field(default_factory=dict)
    """Further groupings of results, e.g. ``{"domain": "forestry"}``."""
    weight: Annotated[
        float, Field(gt=0, allow_inf_nan=False, exclude_if=lambda each: each == 1)
    ] = 1.0
    """Weight of the sample in means, relative to the others; 1 in most benchmarks."""
    difficulty: dict[str, float] = Field(default_factory=dict)
    """Measures of difficulty, e.g. ``{"calls": 3, "unused_files": 1}``; not visible to policies."""
    twin: Annotated[str | None, Field(exclude_if=operator.not_)] = None
    """Id of the sample with the same question of which one is answerable and the other is not; neither is shown."""
    may_abstain: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """True if some samples of the benchmark are unanswerable; the same in all of them."""
    canary: str = ""
    """GUID of the benchmark, on every line, to detect leaks into training data; not visible to policies."""

    def __repr__(self) -> str:
        return f"Sample({self.id!r}, {shorten(self.query, 60)!r})"

    __str__ = __repr__

    @property
    def published_paths(self) -> dict[str, str] | None:
        """Path of each file, by name, in the published benchmark; None if its samples do not refer to paths."""
        paths = self.metadata.get("published_paths")
        if isinstance(paths, dict):
            return {name: str(path) for name, path in paths.items()}
        # Entries of GTA and ThinkGeo; entries of Agent-X (with ``file_path``) do not refer to files by path.
        published = "entry" in self.metadata and "file_path" not in self.metadata
        return {file.name: file.path for file in self.files} if published else None

    @property
    def answerable(self) -> bool:
        """False if the files do not allow an answer."""
        return all(slot.type != "abstain" for slot in self.answer)

    @property
    def checksum(self) -> str:
        """Checksum of what a score depends on: question, right answer, reference, cluster, weight and twin."""
        scored = self.model_dump(mode="json", include=_SCORED_FIELDS)
        return f"{crc32(json.dumps(scored, sort_keys=True).encode()):08x}"

    @property
    def derivable(self) -> bool:
        """True if all parts of the answer that score follow from the reference calls."""
        slots = [slot for slot in self.answer if not slot.scored_apart]
        return bool(slots and self.reference and self.reference.steps) and all(
            map(is_derivable, slots)
        )


_SCORED_FIELDS = {"query", "answer", "reference", "cluster", "weight", "twin"}
"""Fields of a sample that a score or its interval depends on."""


class SampleView(FrozenModel):
    """The part of a sample that a policy may see. ``files[].path`` is for the host only and never shown.

    Examples:
        >>> class NamesFiles:
        ...     async def act(self, view, history):
        ...         return at.Answer(text=", ".join(file.name for file in view.files))
    """

    id: str
    query: str
    files: tuple[SampleFile, ...]
    toolset: tuple[str, ...]
    answer_form: str
    form: Annotated[tuple[FormItem, ...], Field(exclude=True)] = ()
    """Items of the answer form that are answered in text, without their gold."""
    paths: dict[str, str] | None = None
    """See :attr:`Sample.published_paths`."""
    closing: bool = False
    """True if an answer is due and no further call; only known in step-by-step, and used by few protocols."""
    may_abstain: bool = False
    """True if some samples of the benchmark are unanswerable, and this one might be."""
    bare: bool = False
    """True if ``query`` is the entire prompt and the entire reply is the answer."""


FaultKind = Literal["timeout", "error", "empty", "noise", "label", "stale"]


class Fault(FrozenModel):
    """A fault that ``--faults`` put into a tool call; models never see it."""

    call: int
    """Number of the call among the calls of the trajectory, from 0."""
    kind: FaultKind
    landed: bool
    """False if the fault could not change what the policy saw; ``reason`` says why."""
    reason: str = ""
    original: Observation | None = None
    """Observation of the tool itself; None if it did not run or the policy saw it."""


def _checksum_of_sample(fields: dict[str, Any]) -> str:
    """Return the checksum of the sample of a record; empty if the sample is not valid, which is an error of its own."""
    sample = fields.get("sample")
    return sample.checksum if isinstance(sample, Sample) else ""


class Record(FrozenModel):
    """Outcome of one sample in one mode and epoch, with the sample itself and its gold answers.

    ``trajectory`` is set in no-tool and end-to-end; ``actions`` in step-by-step: one predicted action for each
    reference step and one for the answer step. ``invalid`` is the reason for a missing reply that is not the model's
    failure. For example ``run.samples()[0].trajectory.answer`` is the answer of the first record of a run.
    """

    sample: Sample
    mode: Mode
    epoch: int = 0
    trajectory: Trajectory | None = None
    actions: tuple[Action, ...] | None = None
    invalid: str | None = None
    seconds: float = 0.0
    faults: Annotated[tuple[Fault, ...], Field(exclude_if=operator.not_)] = ()
    """Faults that were put into the tool calls, in the order of the calls."""
    checksum: str = Field(default_factory=_checksum_of_sample)
    """:attr:`Sample.checksum` when the record was made: a stored sample that differs from it was changed by hand. That
    of the sample as it is, in records of versions that stored none."""
    agent_replies: Annotated[
        tuple[Reply, ...] | None, Field(exclude_if=lambda replies: replies is None)
    ] = None
    """Replies of models that an external agent used, as it reported them; empty if it reported none. None for models
    and baselines, whose replies belong to steps."""

    def __repr__(self) -> str:
        end = (
            self.invalid
            or (self.trajectory and self.trajectory.termination)
            or f"{len(self.actions or ())} actions"
        )
        return f"Record({self.sample.id!r}, {self.mode}, epoch {self.epoch}, {end})"

    __str__ = __repr__

    @property
    def is_changed(self) -> bool:
        """True if the sample is not what it was when the record was written."""
        return self.checksum != self.sample.checksum

    @property
    def key(self) -> tuple[str, str, int]:
        return (self.mode, self.sample.id, self.epoch)

    @property
    def form_replies(self) -> tuple[Reply, ...]:
        """Replies to the closing messages, which ask for the answer form."""
        sources = self.trajectory.steps if self.trajectory else self.actions
        last = sources[-1] if sources else None
        return last.form_replies if isinstance(last, Step | Answer) else ()

    @property
    def replies(self) -> tuple[Reply, ...]:
        """All replies from which the steps were parsed, in order."""
        replies = [
            source.reply
            for source in (self.trajectory.steps if self.trajectory else self.actions or ())
        ]
        replies += [*self.form_replies, self.trajectory.halted_by if self.trajectory else None]
        return tuple([reply for reply in replies if reply is not None])

    @property
    def spending(self) -> Spending:
        """Tokens of all replies, and the cost if an external agent reported it or it was computed from its tokens."""
        usage = [
            reply.usage
            for reply in (self.replies if self.agent_replies is None else self.agent_replies)
        ]
        tokens = (
            sum([each.input_tokens for each in usage]),
            sum([each.output_tokens for each in usage]),
        )
        cached = [
            each.cached_input_tokens for each in usage if each.cached_input_tokens is not None
        ]
        n_cached = sum(cached) if cached else None
        if self.agent_replies is None:
            return Spending(*tokens, cached_input_tokens=n_cached)
        costs = [each.cost_usd for each in usage]
        cost = (
            sum(cost for cost in costs if cost is not None) if costs and None not in costs else None
        )
        return Spending(*tokens, cost, n_cached) if any(tokens) else Spending(cost_usd=cost)


class Score(FrozenModel):
    """One score of one record: metric, value in [0, 1] and its derivation.

    ``slot`` is the name of the slot (outcome metrics), ``step`` the index of the reference step (process metrics).
    """

    metric: str
    version: str
    sample_id: str
    epoch: int = 0
    slot: str | None = None
    step: int | None = None
    value: Annotated[float, Field(ge=0, le=1)]
    reading: dict[str, JsonValue] = Field(default_factory=dict)
    """Derivation of the value: scope, candidate, rule; or predicted and reference argument."""
    judge: str | None = None
    judge_prompt_hash: str | None = None


Results = Sequence[dict[str, JsonValue] | None]
"""Result of each step so far; None if the step failed or has not run."""

REF_PATTERN = re.compile(
    r"steps\[(?P<step>\d+)\]\.observation(?P<path>(?:\.[A-Za-z_]\w*|\[\d+\])*)"
)
_NAMED_STEP = re.compile(r"steps\[(\d+)\]\.observation\.?")
_PATH_PART = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")


class UnresolvedRef(ValueError):
    """A reference that cannot be resolved; its message counts steps from 1."""


def reference_words(text: str) -> str:
    """Return a reference or an expression for people, who count steps from 1: ``step 1 · count``."""
    return _NAMED_STEP.sub(lambda match: f"step {int(match[1]) + 1} · ", text)


def resolve_ref(ref: str, results: Results) -> JsonValue:
    """Return the value that ``ref`` refers to.

    Raises:
        UnresolvedRef: ``ref`` is not a reference, or the step or the field of its result does not exist.
    """
    match = REF_PATTERN.fullmatch(ref.strip())
    if match is None:
        raise UnresolvedRef(f"{ref!r} is not of the form steps[N].observation.field")
    index = int(match["step"])
    if index >= len(results):
        raise UnresolvedRef(f"{reference_words(ref)}: there is no step {index + 1}")
    value: JsonValue = results[index]
    if value is None:
        raise UnresolvedRef(f"{reference_words(ref)}: that step has no result")
    for part in _PATH_PART.finditer(match["path"]):
        value = _part(value, part[1] or int(part[2]), ref)
    return value


def _part(value: JsonValue, key: str | int, ref: str) -> JsonValue:
    if isinstance(key, str) and isinstance(value, dict) and key in value:
        return value[key]
    if isinstance(key, int) and isinstance(value, list) and key < len(value):
        return value[key]
    missing = f"field {key!r}" if isinstance(key, str) else f"element [{key}]"
    raise UnresolvedRef(f"{reference_words(ref)}: no {missing}")


def is_ref(value: JsonValue) -> bool:
    """True if ``value`` is a reference object, ``{"$ref": ..., "value": ...}``."""
    return isinstance(value, dict) and "$ref" in value


def iter_refs(value: JsonValue, at: str = "") -> Iterator[tuple[str, str, JsonValue]]:
    """Yield all reference objects in ``value`` as (path in ``value``, reference, literal)."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield at, str(value["$ref"]), value.get("value")
            return
        for key, item in value.items():
            yield from iter_refs(item, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from iter_refs(item, f"{at}[{index}]")


def _with_leaves(value: JsonValue, leaf: Callable[[JsonValue], JsonValue]) -> JsonValue:
    """Return ``value`` with ``leaf(item)`` in place of each reference object and each scalar."""
    if isinstance(value, list):
        return [_with_leaves(item, leaf) for item in value]
    if isinstance(value, dict) and "$ref" not in value:
        return {key: _with_leaves(item, leaf) for key, item in value.items()}
    return leaf(value)


def literal_value(value: JsonValue) -> JsonValue:
    """Return ``value`` with each reference object replaced by its literal."""
    return _with_leaves(value, lambda item: item.get("value") if isinstance(item, dict) else item)


def resolved_value(value: JsonValue, results: Results) -> JsonValue:
    """Return ``value`` with each reference object replaced by the value it refers to in ``results``.

    Raises:
        UnresolvedRef: a reference has no value.
    """
    return _with_leaves(
        value,
        lambda item: (
            resolve_ref(cast(str, item["$ref"]), results) if isinstance(item, dict) else item
        ),
    )


def without_literals(value: JsonValue) -> JsonValue:
    """Return ``value`` with the literal of each reference object removed."""
    return _with_leaves(
        value, lambda item: {"$ref": item["$ref"]} if isinstance(item, dict) else item
    )


def renumbered_text(text: str, numbers: Mapping[int, int]) -> str:
    """Return a reference or an expression with the numbers that its steps have now; others stay."""
    return REF_PATTERN.sub(
        lambda match: (
            f"steps[{numbers.get(int(match['step']), match['step'])}].observation{match['path']}"
        ),
        text,
    )


def renumber_refs(value: JsonValue, numbers: Mapping[int, int]) -> JsonValue:
    """Return ``value`` with the numbers that the steps of its reference objects have now; others stay."""

    def renumbered(item: JsonValue) -> JsonValue:
        if not isinstance(item, dict):
            return item
        return {**item, "$ref": renumbered_text(str(item["$ref"]), numbers)}

    return _with_leaves(value, renumbered)


def rename_texts(value: dict[str, JsonValue], names: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return ``value`` with every text that is a key of ``names`` replaced by its entry."""

    def renamed(item: JsonValue) -> JsonValue:
        if isinstance(item, dict):  # a reference object
            return rename_texts(item, names)
        return names.get(item, item) if isinstance(item, str) else item

    return {key: _with_leaves(item, renamed) for key, item in value.items()} if names else value


def update_literals(value: JsonValue, results: Results) -> JsonValue:
    """Return ``value`` with the literals of reference objects updated from ``results``, if the value exists there."""

    def updated(item: JsonValue) -> JsonValue:
        if not isinstance(item, dict):
            return item
        try:
            return {"$ref": item["$ref"], "value": resolved_value(item, results)}
        except UnresolvedRef:
            return {"$ref": item["$ref"], "value": literal_value(item)}

    return _with_leaves(value, updated)
