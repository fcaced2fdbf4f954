"""Samples (a question on files, with its gold), what a policy does on them and observes, and records of that.

A reference to a value of an earlier step is ``steps[0].observation.crop_pct`` in an expression and ``{"$ref": ...,
"value": ...}`` in an argument.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue

from agrotools.core.base import ErrorInfo, FrozenModel
from agrotools.core.slot import Slot
from agrotools.core.taxonomy import AnswerType, FileKind, Mode, Termination

Arguments = dict[str, JsonValue]


class Usage(FrozenModel):
    """Tokens as the endpoint counted them; zero where it does not say."""

    input_tokens: int = 0
    output_tokens: int = 0


class Reply(FrozenModel):
    """The model's raw reply behind an action: kept so that a run can be read again with another parser."""

    text: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    first_token: dict[str, float] = {}
    """Probability of each token that the reply might have begun with, where the endpoint told the likeliest."""


class ToolCall(FrozenModel):
    """A tool's name and its arguments, exactly as the policy gave them."""

    tool: str
    arguments: Arguments = {}
    id: str | None = None


class CallTools(FrozenModel):
    """Call one or more tools; several calls of one message run in order."""

    kind: Literal["call"] = "call"
    calls: Annotated[tuple[ToolCall, ...], Field(min_length=1)]
    thought: str = ""
    reply: Reply | None = None
    refused: ErrorInfo | None = None
    """Why the protocol does not let these calls reach their tools; it is what they return."""


class Answer(FrozenModel):
    """The final answer, as text."""

    kind: Literal["answer"] = "answer"
    text: str
    thought: str = ""
    reply: Reply | None = None
    form_reply: Reply | None = None
    """The reply to the request for the answer form, where the answer lacked it: ``text`` ends with it."""


class Unparseable(FrozenModel):
    """Output that is neither a call nor an answer. ``reason`` says why, ``hint`` how to repair it."""

    kind: Literal["unparseable"] = "unparseable"
    text: str
    reason: str
    hint: str = ""
    reply: Reply | None = None


class Halt(FrozenModel):
    """The model stopped for a reason that is a result in itself: length, context, filtered, timeout."""

    kind: Literal["halt"] = "halt"
    termination: Termination
    reason: str = ""
    reply: Reply | None = None


Action = Annotated[CallTools | Answer | Unparseable | Halt, Field(discriminator="kind")]


class Artifact(FrozenModel):
    """A file that a tool made. ``name`` is unique within the sample; the bytes are stored by ``sha256``."""

    name: str
    kind: Literal["overlay", "mask", "plot", "image", "table"]
    media_type: str
    sha256: str | None = None


class Observation(FrozenModel):
    """Response to a call as a policy sees it: a result or an error, and the artifacts the call made."""

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


class Step(FrozenModel):
    """One thing a policy did: a call with its observation, an answer, or unparseable output with the repair hint.

    ``turn`` counts model messages from 0: calls of one message share it. ``reply`` stands on a turn's first step.
    """

    turn: int
    kind: Literal["call", "answer", "unparseable"]
    call: ToolCall | None = None
    observation: Observation | None = None
    text: str = ""
    """The answer, or the output that could not be parsed."""
    reason: str = ""
    """Why the output could not be parsed; what the policy is told to repair."""
    thought: str = ""
    reply: Reply | None = None
    form_reply: Reply | None = None
    """As in :class:`Answer`."""
    seconds: float = 0.0
    """Wall time of the tool call."""
    cached: bool = False
    recorded: bool = False
    """True if no tool was run: the observation is the one that was recorded of the reference."""
    refused: bool = False
    """True if no tool was run: the protocol did not let the call reach one, and the observation says why."""


class Trajectory(FrozenModel):
    """Steps of a policy on one sample, and the termination."""

    steps: tuple[Step, ...] = ()
    termination: Termination
    reason: str = ""
    halted_by: Reply | None = None
    """The reply behind a halt (length, filtered...), which no step holds; its tokens count like any other's."""

    @property
    def answer(self) -> str | None:
        """The final answer, or None where none was given."""
        if self.termination == "answered" and self.steps and self.steps[-1].kind == "answer":
            return self.steps[-1].text
        return None

    @property
    def calls(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.kind == "call")


class ReferenceStep(FrozenModel):
    """A call of the reference trajectory.

    ``arguments`` may hold ``{"$ref": "steps[0].observation.weed_pct", "value": 8.9}`` where a value comes from an
    earlier step: the reference beside the literal. Steps with the same ``group`` are independent of each other and
    may come in any order. ``truth`` is the result that a perfect tool would have returned, where the source knows it.
    """

    tool: str
    arguments: Arguments
    observation: Observation | None = None
    group: int | None = None
    truth: dict[str, JsonValue] | None = None
    thought: str = ""


class ReferenceTrajectory(FrozenModel):
    """The gold calls in written order; the answer step that follows them is implied."""

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
    """A file of a sample. Policies and tools know it by ``name``; ``path`` is relative to the benchmark folder."""

    name: FileName
    path: str
    kind: FileKind
    sha256: str | None = None
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
    """For masks: class index to meaning, e.g. ``{"1": "crop"}``."""
    note: str | None = None
    """What the person asking would know of the file, e.g. ``false colour: near infrared shown as green``."""

    @property
    def known_arguments(self) -> dict[str, JsonValue]:
        """Arguments of tools that its metadata answers, and that hold where a call leaves them out.

        ``gsd_m`` and ``depth_unit_mm`` as they stand, ``fx_px`` to ``cy_px`` of the intrinsics, ``bands`` as band name
        to number (from 1), ``label_map`` as meaning to class numbers.
        """
        known: dict[str, JsonValue] = {"gsd_m": self.gsd_m, "depth_unit_mm": self.depth_unit_mm}
        if self.intrinsics is not None:
            known |= self.intrinsics.model_dump()
        if self.bands is not None:
            known["bands"] = {name: number for number, name in enumerate(self.bands, start=1)}
        if self.classes is not None:
            known["label_map"] = _numbers_by_meaning(self.classes)
        return {name: value for name, value in known.items() if value is not None}


def _numbers_by_meaning(classes: dict[str, str]) -> dict[str, JsonValue]:
    numbers = {index: int(index) for index in classes if index.isdecimal()}
    return {
        meaning: [numbers[index] for index, other in classes.items() if other == meaning and index in numbers]
        for meaning in classes.values()
    }


class Sample(FrozenModel):
    """One question with its files and its gold. Only :class:`SampleView` ever reaches a policy."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,119}$")]
    query: Annotated[str, Field(min_length=1)]
    files: tuple[SampleFile, ...]
    family: str
    task_type: str
    answer_type: AnswerType
    template: str
    source: str
    toolset: tuple[str, ...]
    reference: ReferenceTrajectory | None = None
    answer: Annotated[tuple[Slot, ...], Field(min_length=1)]
    no_tool_eligible: bool = True
    cluster: str | None = None
    """Samples that share a file, transitively. Computed by the loader; a stored value is not trusted."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    groups: dict[str, str] = Field(default_factory=dict)
    """Further breakdowns of results, e.g. ``{"domain": "forestry"}``."""
    difficulty: dict[str, float] = Field(default_factory=dict)
    """Measures of difficulty, e.g. ``{"calls": 3, "unused_files": 1}``; no policy sees it."""
    canary: str = ""
    """GUID of the benchmark, on every line, so that a leak into training data can be found; no policy sees it."""

    @property
    def published_paths(self) -> dict[str, str] | None:
        """By name of each file its path in the files of a benchmark that others publish; None for samples of ours."""
        paths = self.metadata.get("published_paths")
        if isinstance(paths, dict):
            return {name: str(path) for name, path in paths.items()}
        # Entries of GTA and ThinkGeo; those of Agent-X (with ``file_path``) call files by other names than paths.
        published = "entry" in self.metadata and "file_path" not in self.metadata
        return {file.name: file.path for file in self.files} if published else None

    @property
    def schematic(self) -> bool:
        """True if it asks to recognise what a schematic drawing shows, which its ``metadata`` says: no headline metric
        counts it."""
        return self.metadata.get("schematic") is True


class SampleView(FrozenModel):
    """All that a policy may know of a sample. ``files[].path`` is where the host reads the file, never shown."""

    id: str
    query: str
    files: tuple[SampleFile, ...]
    toolset: tuple[str, ...]
    answer_form: str
    form_lines: tuple[str, ...] = ()
    """The lines that the answer form asks for, such as ``trees: <number>``."""
    paths: dict[str, str] | None = None
    """By name of each file the path that those who published the question call it by; None where they are we."""
    closing: bool = False
    """True if the answer is asked for now, and no further call. Step-by-step alone knows; few protocols tell."""
    bare: bool = False
    """True if ``query`` is the whole prompt: a model is told nothing else, and its whole reply is the answer."""


class Record(FrozenModel):
    """Outcome of one sample in one epoch, beside the sample itself (with its gold).

    ``trajectory`` is set in no-tool and end-to-end; ``actions`` in step-by-step: one predicted action for each
    reference step and a last one for the answer step. ``invalid`` says why no reply could be had (our failure).
    """

    sample: Sample
    mode: Mode
    epoch: int = 0
    trajectory: Trajectory | None = None
    actions: tuple[Action, ...] | None = None
    invalid: str | None = None
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str, int]:
        return (self.mode, self.sample.id, self.epoch)

    @property
    def form_reply(self) -> Reply | None:
        """The reply to the request for the answer form; None where the answer had it, or none was given."""
        last = (self.trajectory.steps if self.trajectory else self.actions or ())[-1:]
        return next((each.form_reply for each in last if isinstance(each, Step | Answer)), None)

    @property
    def replies(self) -> tuple[Reply, ...]:
        """All that the model replied, in order."""
        sources = self.trajectory.steps if self.trajectory else self.actions or ()
        last = (self.form_reply, self.trajectory.halted_by if self.trajectory else None)
        return tuple(reply for reply in (*(source.reply for source in sources), *last) if reply is not None)


class Score(FrozenModel):
    """One score of one record: which scorer, how the answer was read, and the value in [0, 1].

    ``slot`` names the slot (outcome scorers), ``step`` the reference step (process scorers).
    """

    metric: str
    version: str
    sample_id: str
    epoch: int = 0
    slot: str | None = None
    step: int | None = None
    value: Annotated[float, Field(ge=0, le=1)]
    reading: dict[str, JsonValue] = Field(default_factory=dict)
    """Derivation of the value: scope, candidate, rule; or predicted against reference argument."""
    judge: str | None = None
    judge_prompt_hash: str | None = None


Results = Sequence[dict[str, JsonValue] | None]
"""Result of each step so far; None where the step failed or has not run."""

REF_PATTERN = re.compile(r"steps\[(?P<step>\d+)\]\.observation(?P<path>(?:\.[A-Za-z_]\w*|\[\d+\])*)")
_PATH_PART = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")


class UnresolvedRef(ValueError):
    """A reference that cannot be resolved."""


def resolve_ref(ref: str, results: Results) -> JsonValue:
    """The value that ``ref`` points to.

    Raises:
        UnresolvedRef: not a reference, no such step, or no such field in its result.
    """
    match = REF_PATTERN.fullmatch(ref.strip())
    if match is None:
        raise UnresolvedRef(f"{ref!r} is not of the form steps[N].observation.field")
    index = int(match["step"])
    if index >= len(results):
        raise UnresolvedRef(f"{ref}: there is no step {index}")
    value: JsonValue = results[index]
    if value is None:
        raise UnresolvedRef(f"{ref}: step {index} has no result")
    for part in _PATH_PART.finditer(match["path"]):
        value = _field(value, part[1], ref) if part[1] else _element(value, int(part[2]), ref)
    return value


def _field(value: JsonValue, name: str, ref: str) -> JsonValue:
    if not isinstance(value, dict) or name not in value:
        raise UnresolvedRef(f"{ref}: no field {name!r}")
    return value[name]


def _element(value: JsonValue, position: int, ref: str) -> JsonValue:
    if not isinstance(value, list) or position >= len(value):
        raise UnresolvedRef(f"{ref}: no element [{position}]")
    return value[position]


def is_ref(value: JsonValue) -> bool:
    """True if ``value`` is a reference object, ``{"$ref": ..., "value": ...}``."""
    return isinstance(value, dict) and "$ref" in value


def iter_refs(value: JsonValue, at: str = "") -> Iterator[tuple[str, str, JsonValue]]:
    """All reference objects in ``value`` as (where, ref, literal beside it)."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield at, str(value["$ref"]), value.get("value")
            return
        for key, item in value.items():
            yield from iter_refs(item, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from iter_refs(item, f"{at}[{index}]")


def literal_value(value: JsonValue) -> JsonValue:
    """``value`` with each reference object replaced by the literal beside it."""
    if isinstance(value, dict):
        if "$ref" in value:
            return value.get("value")
        return {key: literal_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [literal_value(item) for item in value]
    return value


def resolved_value(value: JsonValue, results: Results) -> JsonValue:
    """``value`` with each reference object replaced by what it points to in ``results``.

    Raises:
        UnresolvedRef: where a reference leads to no value.
    """
    if isinstance(value, dict):
        if "$ref" in value:
            return resolve_ref(cast(str, value["$ref"]), results)
        return {key: resolved_value(item, results) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved_value(item, results) for item in value]
    return value


def renamed(value: dict[str, JsonValue], names: Mapping[str, str]) -> dict[str, JsonValue]:
    """``value`` with every text in it that is a key of ``names``, as a whole, exchanged for what stands there."""
    return {key: _renamed(item, names) for key, item in value.items()} if names else value


def _renamed(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    if isinstance(value, dict):
        return {key: _renamed(item, names) for key, item in value.items()}
    return value


def restated(value: JsonValue, results: Results) -> JsonValue:
    """``value`` whose reference objects carry what ``results`` hold as the literal beside them, where they hold it."""
    if isinstance(value, dict):
        if "$ref" in value:
            try:
                return {"$ref": value["$ref"], "value": resolved_value(value, results)}
            except UnresolvedRef:
                return {"$ref": value["$ref"], "value": literal_value(value)}
        return {key: restated(item, results) for key, item in value.items()}
    if isinstance(value, list):
        return [restated(item, results) for item in value]
    return value
