"""Environment to train agents in: questions of ``embedded`` about new scenes, with the tools as methods and a reward.

TRL's ``environment_factory`` takes :class:`Env` as it is, and rows of :func:`env_rows` as data. Every group of rows is
drawn once, from scene seeds that no other group, no published benchmark and no ``--fresh-seed`` below a million has.
Only questions are asked whose reference calls, made with the real tools, earn the whole reward.
"""

import asyncio
import atexit
import os
import re
import sys
import threading
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import cache, wraps
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast, get_args

from filelock import FileLock

from agrotools.agents.baselines.simple import OraclePolicy
from agrotools.agents.images import PREVIEWED_KINDS, BoundedPicture, file_parts, make_picture
from agrotools.agents.llm import (
    FORM_REQUESTS,
    closing_message,
    error_data,
    render,
    second_closing_message,
)
from agrotools.agents.modes import reference_history
from agrotools.agents.session import Session
from agrotools.agents.task import ToolDescription, is_parameter_name, with_signature
from agrotools.calling import get_tool, tool_specs
from agrotools.calling.cache import ResultCache
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.services import run_now
from agrotools.core import (
    Answer,
    DeclaredTool,
    ErrorInfo,
    InfrastructureError,
    Sample,
    SampleView,
    Step,
    ToolSpec,
    Trajectory,
    UsageError,
)
from agrotools.core.files import cache_dir
from agrotools.formats.benchmark import FRESH, MOST_MAKERS, Benchmark, fresh_version, load_folder
from agrotools.loading.benchmarks import Loading, load_as
from agrotools.models import TextPart
from agrotools.runner.plan import sample_with_tools
from agrotools.runner.progress import stage_progress
from agrotools.scoring.metrics import counts_in_fas
from agrotools.scoring.slots import best_outcome, outcome_value
from agrotools.served.tools import NO_SERVERS, ServedCalls, ServedToolset, open_toolset
from agrotools.text.answer_reader import as_form, is_complete
from agrotools.text.loose_json import NotJson, dumps, storable
from agrotools_build.sources.drawn.fresh import write_fresh
from agrotools_tools import AGROTOOLS

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
DRAWN_TOGETHER = 12
"""Number of answerable questions that are drawn at a time; the groups of a seed take turns with the published ones."""
DRAWN_AT_FIRST = 2
"""Number of questions of each of the first groups of a seed, so that the first rows are there in seconds. One alone
would often be left out: the tools must earn its whole reward."""
FIRST_GROUPS = DRAWN_TOGETHER // DRAWN_AT_FIRST
"""Number of these groups; together they ask what one of the others asks."""
MOST_CALLS = 20
"""Maximum number of tool calls of an episode."""
_FIRST_SEED, _MOST_SEEDS, _MOST_GROUPS = 1_000_000, 1_000_000, 1_000
_STARTING = threading.Lock()
_ROW = re.compile(r"(train|validation|test)-(\d{1,6})-(\d{1,3}):([\w-]+)")
SUBMIT = """
- At the end, call submit_answer with the answer, in your own words, with every value that the question asks for. It
  returns a form: call submit_answer again with the filled form. Only a submitted form counts, and after the first
  submission no other tool can be called."""
"""Rule on the end of an episode, in place of that of ``agrotools eval``."""
NOT_BEGUN = "no episode has begun: reset starts one"


class Question(NamedTuple):
    """A sample without its reference calls, what an agent may see of it, and its whole prompt."""

    row_id: str
    sample: Sample
    view: SampleView
    prompt: str


def env_rows(split: Split, n: int, seed: int = 0, *, images: bool = False) -> list[dict[str, Any]]:
    """Return ``n`` rows for :class:`Env`, e.g. for ``datasets.Dataset.from_list``; scenes are drawn on first use.

    A row has ``id``, which names the question, and ``prompt``, an empty message that TRL appends the question to. Rows
    of fewer questions are the first of those of more. Drawing takes about 3 s a question on two cores. The first twelve
    questions are drawn two at a time, so that the first row is there in seconds.

    Args:
        split: ``train``, ``validation`` or ``test``; they share no scene.
        n: number of rows, at least 1.
        seed: 0 to 999,999; rows of different seeds share no scene.
        images: True adds ``images``, the files that can be shown as a list of Pillow images, for models that see.

    Raises:
        UsageError: there is no such split, or a number is out of range.
        InfrastructureError: a scene cannot be drawn, or no tool worker starts.
    """
    if split not in SPLITS or not 0 <= seed < _MOST_SEEDS or n < 1:
        hint = f"one of {', '.join(SPLITS)}; n from 1"
        raise UsageError(f"no rows of split {split!r}, n {n}, seed {seed}", hint=hint)
    rows: list[dict[str, Any]] = []
    for group in range(_MOST_GROUPS):
        drawn = [*questions(split, seed, group).values()]
        Random(group).shuffle(drawn)
        for question in drawn[: n - len(rows)]:
            row = {"prompt": [{"role": "user", "content": ""}], "id": question.row_id}
            rows.append(row | ({"images": _pictures(question.view)} if images else {}))
        if len(rows) == n:
            return rows
    raise UsageError(
        f"seed {seed} of {split} has {len(rows):,} rows", hint="take another seed for the others"
    )


def _pictures(view: SampleView) -> list[Any]:
    made = [
        make_picture(Path(f.path), f.name, f.kind, f.bands)
        for f in view.files
        if f.kind in PREVIEWED_KINDS
    ]
    return [picture.image for picture in made if isinstance(picture, BoundedPicture)]


def fresh_seed(split: Split, seed: int, group: int) -> int:
    """Return the number, as of ``--fresh-seed``, that the scenes of a group of rows are drawn with."""
    return _FIRST_SEED + len(SPLITS) * (_MOST_GROUPS * seed + group) + SPLITS.index(split)


def is_training_version(version: str) -> bool:
    """Return True for the version of a benchmark whose scenes are of the split ``train``."""
    _, mark, seed = version.rpartition(FRESH)
    if not mark or not seed.isdecimal() or int(seed) < _FIRST_SEED:
        return False
    return SPLITS[(int(seed) - _FIRST_SEED) % len(SPLITS)] == "train"


@cache
def published() -> Benchmark:
    """Return ``embedded``, whose questions are drawn anew."""
    return load_as("embedded", Loading(files_later=True))


def published_of(group: int) -> list[Sample]:
    """Return the published questions that a group of rows asks anew."""
    asked = [
        each
        for each in published().samples
        if each.answerable and any(map(counts_in_fas, each.answer))
    ]
    asked.sort(key=lambda each: (zlib.crc32(each.id.encode()), each.id))
    # Reading the knowledge base takes longer than drawing a scene, so that the first rows do without.
    asked[:DRAWN_TOGETHER] = sorted(asked[:DRAWN_TOGETHER], key=_looks_up)
    first, number = group * DRAWN_AT_FIRST, DRAWN_AT_FIRST
    if group >= FIRST_GROUPS:
        first, number = (group - FIRST_GROUPS + 1) * DRAWN_TOGETHER, DRAWN_TOGETHER
    return [asked[place % len(asked)] for place in range(first, first + number)]


def _looks_up(sample: Sample) -> bool:
    """Return True if the reference calls of a sample look something up in the knowledge base."""
    assert sample.reference is not None
    return any(step.tool == "lookup_agronomy" for step in sample.reference.steps)


def possible_ids(group: int) -> set[str]:
    """Return the ids that samples of a group can have, without drawing it: the kind of scene, and a number up to that
    of the questions of this kind, twins counted. Not every one is a question in the end."""
    kinds = Counter(
        each.id.rpartition("-")[0]
        for each in published_of(group)
        for _ in range(2 if each.twin else 1)
    )
    return {f"{kind}-{number:03}" for kind, n in kinds.items() for number in range(1, n + 1)}


def draw_group(split: Split, seed: int, group: int, place: str = "env") -> Benchmark:
    """Return the benchmark of a group of rows, which is drawn unless ``place``, a folder of the cache, has it."""
    embedded, taken = published(), published_of(group)
    fresh = fresh_seed(split, seed, group)
    folder = (
        cache_dir(place) / f"{embedded.name}-{fresh_version(embedded.version, fresh)}-{len(taken)}"
    )
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):  # several processes train together
            if not folder.is_dir():
                progress = stage_progress(sys.stderr)
                write_fresh(
                    replace(embedded, samples=taken),
                    fresh,
                    folder,
                    progress=progress,
                    workers=MOST_MAKERS,
                )
    return load_folder(folder)


@cache
def questions(split: Split, seed: int, group: int) -> dict[str, Question]:
    """Return the questions of a group by id of the sample: those whose reference answer, and the twin's, is right."""
    benchmark = draw_group(split, seed, group)
    right = {
        sample.id
        for sample in benchmark.samples
        if outcome_value(sample, reference_answer(sample)) == best_outcome(sample)
    }
    kept = [each for each in benchmark.samples if {each.id, each.twin or each.id} <= right]
    return {
        each.id: question_of(benchmark, each, f"{split}-{seed}-{group}:{each.id}") for each in kept
    }


def question_of(benchmark: Benchmark, sample: Sample, row_id: str = "") -> Question:
    """Return a sample as it is asked: instructions of ``agrotools eval`` but for the end, its files, its query."""
    view = benchmark.view(sample, "end-to-end")
    rules = render("tool_calling_system").rpartition("\n- ")[0] + SUBMIT
    files = [
        part.text for part in file_parts(view.files, images=False) if isinstance(part, TextPart)
    ]
    listed = [render("files", count=len(files)), *files, ""] if files else []
    prompt = "\n".join([rules, "", *listed, render("question", query=view.query)])
    return Question(row_id, sample.model_copy(update={"reference": None}), view, prompt)


def reference_answer(sample: Sample) -> Trajectory:
    """Return the reference calls of a sample with the answer that follows from their recorded results."""
    assert sample.reference is not None
    steps = reference_history(sample.reference)
    answer = run_now(OraclePolicy(sample).act(published().view(sample, "end-to-end"), steps))
    assert isinstance(answer, Answer)
    last = Step(turn=len(steps), kind="answer", text=answer.text)
    return Trajectory(steps=(*steps, last), termination="answered")


def tools_of_process(
    served: ServedToolset = NO_SERVERS,
) -> tuple[asyncio.AbstractEventLoop, ToolExecutor]:
    """Start the tool workers of this process, on an event loop in a thread of its own; both end with the process, and
    so do the sessions with the servers of ``served``."""
    with _STARTING:
        return _started_tools(os.getpid(), served)  # a forked process has no thread of its parent


@cache
def _started_tools(
    process: int, served: ServedToolset
) -> tuple[asyncio.AbstractEventLoop, ToolExecutor]:
    def stop() -> None:
        if os.getpid() == process:
            asyncio.run_coroutine_threadsafe(executor.__aexit__(), loop).result()

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="agrotools-env", daemon=True).start()

    executor = ToolExecutor(
        cache=ResultCache(),
        backends={**published().header.backends, **served.backends},
        served=ServedCalls(served) if served.servers else None,
    )
    asyncio.run_coroutine_threadsafe(executor.__aenter__(), loop).result()
    atexit.register(stop)
    return loop, executor


def _begin_to_end(
    process: int, loop: asyncio.AbstractEventLoop, executor: ToolExecutor, session: Session
) -> "Future[None] | None":
    """Begin to end the sessions of an episode with tool servers; None in a fork of the process that has them."""
    if os.getpid() != process:
        return None
    return asyncio.run_coroutine_threadsafe(session.end_calls(executor), loop)


def _refusing_other_arguments(submit: Callable[["Env", str], str]) -> Callable[..., str]:
    """Return ``submit_answer`` so that other arguments are an observation, as with every tool, and no exception."""

    @wraps(submit)
    def checked(self: "Env", *texts: str, **arguments: Any) -> str:
        given = [*texts, *arguments.values()]
        if len(given) == 1 and arguments.keys() <= {"answer"}:
            return submit(self, given[0])
        message = "submit_answer takes one argument, answer"
        return _refused("submit_answer", ErrorInfo(kind="invalid_argument", message=message))

    return checked


def _refused(tool: str, error: ErrorInfo) -> str:
    """Return the observation of a call that reaches no tool."""
    return render("observation", data=dumps({"tool": tool, "error": error_data(error)}))


class Env:
    """One episode at a time: :meth:`reset` asks a question, the tools are methods, :meth:`get_reward` scores.

    Tools return text as ``agrotools eval`` shows it to a model, also if a call fails. The reward is that of
    ``agrotools eval`` (Final Answer Score), -1 to 1: parts of the answer that are right, 0 without a submitted form; a
    refusal earns 1 if the question has no answer, and costs 1 on its answerable twin.
    """

    shows_pictures: ClassVar[bool] = False
    """Whether results of tools hold the pictures that a call made: :class:`PictureEnv`."""
    served: ClassVar[ServedToolset] = NO_SERVERS
    """Tool servers that episodes call: :meth:`with_servers`."""

    def __init__(self) -> None:
        self.session: Session | None = None
        """The sample of the episode with its calls; it knows the gold."""
        self._submitted, self._has_form, self._is_over = list[str](), False, True
        self._fault: InfrastructureError | None = None
        self._end_of_calls: weakref.finalize[..., Self] | None = None
        """Ends the sessions with tool servers, also if nobody closes the episode; None before the first call."""

    @classmethod
    def with_servers(
        cls, tool_servers: Sequence[str] = (), bindings: Sequence[str] = ()
    ) -> type[Self]:
        """Return this class with the tools of MCP servers, as ``agrotools eval`` offers them with the same words.

        Tools of a server are further methods; tools of ours that a binding makes run on the server. Each server is
        started once here, to list its tools, and then for each episode that calls it. What is said of it, such as that
        it is unsealed, goes to standard error.

        Args:
            tool_servers: addresses of servers.
            bindings: files that make tools of ours of calls of a server.

        Raises:
            UsageError: a server or a binding cannot be used.
            InfrastructureError: a server does not start.
        """
        if cls.served.servers:
            raise UsageError(
                "this class has tool servers already", hint="give all of them in one with_servers"
            )
        served = open_toolset(
            tool_servers,
            bindings,
            get_tool,
            taken=dir(cls()),
            answers=[published().root, cache_dir()],
        )
        _check_arguments(served.specs)
        for note in served.notes:
            sys.stderr.write(f"{note}\n")
        methods = {spec.name: _method(spec) for spec in served.specs}
        about = {"__doc__": cls.__doc__, "__module__": cls.__module__, "served": served}
        return cast("type[Self]", type(cls.__name__, (cls,), {**methods, **about}))

    @classmethod
    def pool(cls, n: int, split: Split = "train", seed: int = 0) -> list[dict[str, Any]]:
        """Draw the scenes of ``n`` rows ahead, onto disk, and return the rows: :func:`env_rows`.

        A pool that was interrupted goes on where it was, and :meth:`reset` then reads instead of drawing. No tool of
        an agent: TRL offers the functions of the class, of which a class method is none.
        """
        return env_rows(split, n, seed)

    def reset(self, **row: Any) -> str:
        """Start the episode of a row of :func:`env_rows`, named by its ``id``, and return its prompt.

        Raises:
            UsageError: there is no such row.
        """
        question = _question(row.get("id"))
        self._close()
        sample = sample_with_tools(question.sample, self.served.specs)
        self.session = Session(sample, question.view)
        self._submitted, self._is_over = [], False
        return question.prompt

    @_refusing_other_arguments
    def submit_answer(self, answer: str) -> str:
        """Submit the answer. The first call returns the form of the answer; call it again with the filled form.

        Args:
            answer: first the answer in your own words with every value that the question asks for, then the filled form

        Returns:
            The form, or that the answer is submitted.
        """
        if self.session is None or self._is_over:
            # A model reads this: it cannot reset.
            return "The answer is submitted: the episode is over." if self._submitted else NOT_BEGUN
        view, text = self.session.view, _as_text(answer)
        text = as_form(text, view.form) if self._submitted else text
        self._submitted.append(text)
        self._has_form = is_complete(text, view.form)
        self._is_over = self._has_form or len(self._submitted) > FORM_REQUESTS
        if self._is_over:
            return "The answer is submitted."
        is_first = len(self._submitted) == 1
        message = closing_message(view) if is_first else second_closing_message(view, text)
        return f"{message}\nCall submit_answer with it."

    def get_reward(self) -> float:
        """Return the reward of the episode, -1 to 1; 0 if no answer was submitted.

        Raises:
            InfrastructureError: a tool server failed in the episode, or no worker started: it has no reward.
        """
        if self._fault is not None:
            raise self._fault
        if self.session is None or not self._submitted:
            return 0.0
        answered = self.session.trajectory(
            self._submitted[-1], "answered" if self._has_form else "no_form"
        )
        return outcome_value(self.session.sample, answered)

    @property
    def is_over(self) -> bool:
        """True if no further submission is taken."""
        return self._is_over

    @property
    def close(self) -> Callable[[], None]:
        """Function that ends the episode with its tool servers, and removes its files. TRL offers the functions of the
        class as tools, so that this is a property."""
        return self._close

    def _close(self) -> None:
        if self._end_of_calls is not None:
            ending: Future[None] | None = self._end_of_calls()
            if ending is not None:
                ending.result()
        if self.session:
            self.session.close()
        self.session, self._is_over = None, True
        self._fault, self._end_of_calls = None, None

    def _call(self, tool: str, arguments: dict[str, Any]) -> "str | list[dict[str, Any]]":
        if (
            self.session is None
            or self._is_over
            or self._submitted
            or len(self.session.outcomes) >= MOST_CALLS
        ):
            if self.session is None:
                last = NOT_BEGUN
            elif self._is_over:
                last = "the episode is over"
            else:
                last = "call submit_answer"
            message = "no further tool can be called"
            return _refused(tool, ErrorInfo(kind="unknown_tool", message=message, hint=last))
        loop, executor = tools_of_process(self.served)
        if self.served.servers and self._end_of_calls is None:
            self._end_of_calls = weakref.finalize(
                self, _begin_to_end, os.getpid(), loop, executor, self.session
            )
            self._end_of_calls.atexit = False  # the executor is closed then
        called: Future[str] = asyncio.run_coroutine_threadsafe(
            self.session.call(executor, tool, arguments), loop
        )
        try:
            text = called.result()
        except InfrastructureError as fault:
            self._fault = fault
            raise
        pictures = self.session.last_pictures() if self.shows_pictures else []
        if not pictures:
            return text
        blocks: list[dict[str, Any]] = [{"type": "image", "image": each} for each in pictures]
        return [*blocks, {"type": "text", "text": text}]


class PictureEnv(Env):
    """:class:`Env` for models that see: what a call draws (crop, marked region, overlay, chart) is in its result.

    Such a result is a list of content blocks, as TRL takes it: ``{"type": "image", "image": PIL.Image}`` for each
    picture, at most 512 pixels on the long side, then ``{"type": "text", "text": ...}``. Other results stay text.
    """

    shows_pictures = True


def _as_text(answer: object) -> str:
    """Return an answer as text: an object of the items and other JSON as JSON; empty what is no JSON."""
    try:
        return answer if isinstance(answer, str) else dumps(storable(answer))
    except NotJson:
        return ""


def _question(row_id: Any) -> Question:
    found: Question | None = None
    if match := _ROW.fullmatch(str(row_id)):
        split, seed, group, sample_id = match.groups()
        # Asked for first, since drawing a group takes half a minute.
        if sample_id in possible_ids(int(group)):
            found = questions(cast(Split, split), int(seed), int(group)).get(sample_id)
    if found is None:
        raise UsageError(
            f"there is no row {row_id!r}",
            hint='reset with a row of agrotools_build.env_rows("train", 100)',
        )
    return found


def _method(spec: ToolSpec) -> Callable[..., Any]:
    def call(self: Env, /, **arguments: Any) -> Any:
        return self._call(spec.name, arguments)  # pyright: ignore[reportPrivateUsage]

    return with_signature(call, ToolDescription(**spec.offered()), str, is_method=True)


for _spec in tool_specs(AGROTOOLS):
    setattr(Env, _spec.name, _method(_spec))


def _check_arguments(specs: Sequence[DeclaredTool]) -> None:
    """Check that served tools can be methods; UsageError if an argument has a name that Python does not take."""
    for spec in specs:
        for name in cast("dict[str, Any]", spec.parameters["properties"]):
            if not is_parameter_name(name):
                raise UsageError(
                    f"the tool server {spec.server} has a tool {spec.name} with an argument {name!r}, which no Python "
                    "function can have",
                    hint="rename it on the server, or bind a tool of ours to it",
                )


def offered_tools(env: type[Env] = Env) -> list[dict[str, Any]]:
    """Return name, description and JSON Schema of the arguments of each tool of a class of :class:`Env`, for frameworks
    that take no Python functions."""
    about = " ".join(str(Env.submit_answer.__doc__).partition("Args:")[0].split())
    answer = {"type": "string", "description": "first in your own words, then the filled form"}
    arguments = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    submit = {"name": "submit_answer", "description": about, "parameters": arguments}
    specs = [*tool_specs(AGROTOOLS), *env.served.specs]
    return [*(spec.offered() for spec in specs), submit]


def call_tool(env: Env, tool: str, arguments: dict[str, Any]) -> str:
    """Call a tool of an episode by name and return its text, also if there is no such tool or argument."""
    if tool != "submit_answer":
        shown = env._call(tool, arguments)  # pyright: ignore[reportPrivateUsage]
        return shown if isinstance(shown, str) else str(shown[-1]["text"])
    return env.submit_answer(**arguments)
