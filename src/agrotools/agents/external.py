"""External agents: programs and functions that run a loop of their own, adapted to policies.

A policy is asked for one action at a time; an agent calls tools whenever it wants. :class:`AgentPolicy` lets the agent
run beside the sample: each call it makes becomes the next action, the observation goes back to the waiting call, and
what it returns is the answer. Limits, workspaces and records are therefore those of every other policy.
"""

import asyncio
import base64
import inspect
import json
import os
import threading
import traceback
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from mimetypes import guess_type
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from agrotools.agents.images import describe, result_pictures
from agrotools.agents.llm import (
    FORM_REQUESTS,
    closing_message,
    observation_data,
    render,
    second_closing_message,
)
from agrotools.agents.long_replies import in_daemon_thread, kept_text
from agrotools.agents.task import Picture, SendUsage, answer_text, task_from_json
from agrotools.agents.usage import SampleUsage, UsageMeter
from agrotools.core import (
    Action,
    Answer,
    CallTools,
    EndpointUnreachable,
    Halt,
    InfrastructureError,
    Reply,
    SampleView,
    Step,
    ToolCall,
    ToolSpec,
    first_error,
)
from agrotools.core.errors import innermost, last_words, words_of
from agrotools.models.base import DEFAULT_WIRE, WireSettings
from agrotools.models.transport import NoResponse, TimedOut, Transport, UntrustedServer, backoff_s
from agrotools.text.answer_reader import as_form, is_complete
from agrotools.text.loose_json import NotJson, dumps, loads_strictly

CallTool = Callable[[str, dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]
"""Executes a tool for an agent and returns its observation: ``result`` or ``error``, ``artifacts``, ``pictures``."""
RunAgent = Callable[[dict[str, Any], CallTool, SendUsage], Coroutine[Any, Any, Any]]
"""Runs an agent on a task (as JSON, see :func:`task_json`) and returns its answer, a text or a dict; the last argument,
called in the same event loop, takes the agent's reports of its usage."""
Solve = Callable[[dict[str, Any], CallTool, SendUsage, "FormExchange"], Coroutine[Any, Any, None]]
"""Runs an agent like :data:`RunAgent`, and submits its answer and its form to the last argument."""
Specs = Callable[[Sequence[str]], Sequence[ToolSpec]]


class AgentStopped(Exception):
    """The sample ended (a limit, or an interrupt) while the agent waited for a tool."""


class FormExchange:
    """Answer of an agent on a sample, and its replies to the closing messages, which ask for the answer form."""

    def __init__(self, view: SampleView) -> None:
        self._view = view
        self._forms = list[str]()
        self.words: str | None = None
        """The answer in the agent's own words; None before it."""
        self.printed = ""
        """What the process of an agent printed on the sample, which is no part of the answer."""

    def submit(self, given: object) -> dict[str, str] | None:
        """Take the answer, then the replies; return ``form_request``, the next closing message, with the ``answer``.

        A dict as the answer is the form. The form is asked for again if a value is missing or cannot be read; None is
        the end.
        """
        text, items = answer_text(given), self._view.form
        is_form = bool(items) and (self.words is not None or isinstance(given, Mapping))
        text = as_form(text, items) if is_form else text
        is_last = not items or (is_form and (self.words is None or is_complete(text, items)))
        if is_form:
            self._forms.append(text)
        if self.words is None:
            self.words = "" if is_form else text
        if is_last or len(self._forms) == FORM_REQUESTS:
            return None
        again = second_closing_message(self._view, text) if is_form else closing_message(self._view)
        return {"form_request": again, "answer": self.words}

    def answer(self) -> Answer:
        """Return what was submitted. An agent that takes no closing message may have given its values at once."""
        text, items = "\n\n".join(filter(None, (self.words, *self._forms[-1:]))), self._view.form
        formless = bool(items) and not self._forms and not is_complete(text, items)
        replies = tuple(Reply(text=kept_text(form)) for form in self._forms)
        return Answer(text=text, form_replies=replies, formless=formless)


def form_task(task: Mapping[str, Any], request: Mapping[str, str]) -> dict[str, Any]:
    """Return the task of the second call of a function, which copies its answer into the form."""
    prompt = "\n\n".join(
        [task["prompt"], f"Your answer: {request['answer']}", request["form_request"]]
    )
    return {**task, **request, "tools": [], "prompt": prompt}


class AgentPolicy:
    """Policy whose actions are the tool calls and the answer of one run of an agent.

    After ``max_steps`` calls the sample ends; the agent is told. After a step of more than ``timeout_s`` s it ends
    with the termination ``timeout``; None for no limit. The agent is told the ``epoch`` of the sample and the ``seed``
    of the run, so that one which keeps its answers can tell epochs apart.
    """

    def __init__(
        self,
        solve: Solve,
        specs: Specs,
        max_steps: int,
        meter: UsageMeter,
        timeout_s: float | None,
        *,
        epoch: int = 0,
        seed: int = 0,
    ) -> None:
        self.artifacts: Path | None = None
        self._solve, self._specs = solve, specs
        self._max_steps, self._timeout_s = max_steps, timeout_s
        self._epoch, self._seed = epoch, seed
        self.usage = SampleUsage(meter)
        self._run: asyncio.Task[None] | None = None
        self._exchange: FormExchange | None = None
        self._calls: asyncio.Queue[tuple[ToolCall, asyncio.Future[dict[str, Any]]]] = (
            asyncio.Queue()
        )
        self._waiting: asyncio.Future[dict[str, Any]] | None = None

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        self.usage.check()
        if self._run is None:
            task = {
                **task_json(view, self._specs, self._max_steps),
                "epoch": self._epoch,
                "seed": self._seed,
            }
            await self.usage.begin(task)
            self._exchange = FormExchange(view)
            self._run = asyncio.create_task(
                self._solve(task, self._call, self.usage.report, self._exchange)
            )
        if self._waiting is not None and not self._waiting.done():
            # The agent still waits for the result of its last call, which is the last step by now.
            self._waiting.set_result(await self._with_pictures(history[-1]))
        # Whatever comes first: another call, the answer, or a fault that the agent itself may never notice.
        next_call = asyncio.ensure_future(self._calls.get())
        failed = asyncio.ensure_future(self.usage.failed.wait())
        awaited = {next_call, failed, self._run}
        await asyncio.wait(awaited, timeout=self._timeout_s, return_when=asyncio.FIRST_COMPLETED)
        failed.cancel()
        if self.usage.fault is not None:
            next_call.cancel()
            raise self.usage.fault
        if next_call.done():
            call, self._waiting = next_call.result()
            self.usage.check()
            return CallTools(calls=(call,))
        next_call.cancel()
        if self._run.done():
            self._run.result()
            assert self._exchange is not None
            return self._exchange.answer()
        await self.end_sample()
        return Halt(
            termination="timeout",
            reason=f"the agent took more than {self._timeout_s:g} s for one step",
        )

    @property
    def printed(self) -> str:
        """What the process of the agent printed on the sample; empty if the agent has no process of its own."""
        return self._exchange.printed if self._exchange is not None else ""

    async def end_sample(self) -> None:
        """Stop the agent, if it is still running."""
        self.usage.end()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(AgentStopped("the sample has ended"))
        while not self._calls.empty():
            self._calls.get_nowait()[1].cancel()
        if self._run is not None:
            self._run.cancel()
            with suppress(
                asyncio.CancelledError, Exception
            ):  # of a run that is done, too: it may not have been seen
                await self._run
        await self.usage.settle()

    async def _with_pictures(self, step: Step) -> dict[str, Any]:
        """Return the observation of a call, with the pictures that it wrote (media type and base64 content)."""
        shown, artifacts = (
            shown_observation(step),
            step.observation.artifacts if step.observation else (),
        )
        if not artifacts or self.artifacts is None:
            return shown
        pictures = await asyncio.to_thread(result_pictures, artifacts, self.artifacts)
        return (
            {**shown, "pictures": [Picture(*each)._asdict() for each in pictures]}
            if pictures
            else shown
        )

    async def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._calls.put_nowait((ToolCall(tool=tool, arguments=arguments), future))
        return await future


def shown_observation(step: Step) -> dict[str, Any]:
    """Return the observation of a call as a model would see it; a result that is too long is a text."""
    text = observation_data(step)
    try:
        return {key: value for key, value in json.loads(text).items() if key != "tool"}
    except ValueError:
        return {"result": {"text": text}}


def task_json(view: SampleView, specs: Specs, max_steps: int) -> dict[str, Any]:
    """Return what an agent is told about a sample, as JSON: query, files, prompt, tools, max_steps."""
    tools = [spec.offered(open_maps=True) for spec in (specs(view.toolset) if view.toolset else ())]
    files = [
        {
            "name": file.name,
            "path": os.path.realpath(file.path),
            "kind": file.kind,
            "description": describe(file, None, is_shown=False),
            "bands": file.bands,
        }
        for file in view.files
    ]
    listing = (
        [render("files", count=len(files)), *(f"- {file['description']}" for file in files)]
        if files
        else []
    )
    instructions = render("tool_calling_system" if tools else "no_tool_system")
    question = render("question", query=view.query)
    return {
        "query": view.query,
        "files": files,
        "prompt": view.query
        if view.bare
        else "\n\n".join([instructions, "\n".join(listing), question]),
        "tools": tools,
        "max_steps": max_steps,
    }


def takes_form(function: Callable[..., Any]) -> bool:
    """Return True if ``function`` has a parameter ``form``, so that it is called again with the closing message."""
    return "form" in inspect.signature(function).parameters


def solve_with(function: Callable[..., Any]) -> Solve:
    """Return how a plain or async ``function`` solves a task in this process, see :func:`run_with`."""
    run = run_with(function)

    async def solve(
        task: dict[str, Any], call: CallTool, report: SendUsage, exchange: FormExchange
    ) -> None:
        request = exchange.submit(await run(task, call, report))
        while request and takes_form(function):
            request = exchange.submit(await run(form_task(task, request), call, report))

    return solve


def run_with(function: Callable[..., Any]) -> RunAgent:
    """Return how a plain or async ``function`` runs on a task in this process. A plain one runs in its own thread."""

    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )

    async def run(data: dict[str, Any], call: CallTool, report: SendUsage) -> Any:
        loop, send_usage = asyncio.get_running_loop(), _from_any_thread(report)
        form = {"form": data.get("form_request")} if takes_form(function) else {}
        if is_async:
            with _named_faults(asyncio.CancelledError):
                return await function(task_from_json(data, call, send_usage), **form)

        def call_tool(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
            try:
                return asyncio.run_coroutine_threadsafe(call(tool, arguments), loop).result()
            except RuntimeError as error:  # the loop is closed
                raise AgentStopped(str(error)) from None

        def work() -> Any:
            with _named_faults():
                return function(task_from_json(data, call_tool, send_usage), **form)

        return await in_daemon_thread(work, "agent")

    return run


def described(error: BaseException) -> str:
    """Return type, message and place of an exception in the code of an agent; of a group, of those in it."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(map(described, innermost(error))))
    frames = [
        each
        for each in traceback.extract_tb(error.__traceback__)
        if "agrotools/agents" not in each.filename
    ]
    place = (
        f" ({frames[-1].filename.rpartition('/')[2]}, line {frames[-1].lineno})" if frames else ""
    )
    words = words_of(error)
    return f"{type(error).__name__}{f': {words}' if words else ''}{place}"


@contextmanager
def _named_faults(*passed_on: type[BaseException]) -> Generator[None]:
    """Raise an InfrastructureError in place of an exception of an agent that is not one of ``passed_on``."""
    try:
        yield
    except passed_on:
        raise
    except BaseException as error:
        raise InfrastructureError(f"the agent failed: {described(error)}") from error


def _from_any_thread(report: SendUsage) -> SendUsage:
    """Return ``report`` for any thread: it is called in the running event loop, before the agent's answer."""
    loop, thread = asyncio.get_running_loop(), threading.get_ident()

    def send(data: dict[str, Any]) -> None:
        if threading.get_ident() == thread:
            report(data)
        else:
            with suppress(RuntimeError):  # the loop is closed: the run has ended
                loop.call_soon_threadsafe(report, data)

    return send


class _RequestedCall(BaseModel):
    tool: str
    arguments: dict[str, Any] = {}


class _Turn(BaseModel):
    call: _RequestedCall | None = None
    usage: dict[str, Any] | None = None
    """A :class:`~agrotools.agents.task.UsageReport`, whose faults are not those of the turn."""
    answer: str | dict[str, Any] | None = None


_LONGEST_FAILURE = 200
"""Characters of the body of a failed reply that a message shows."""
_FACTS = ("name", "kind", "description", "bands")
"""Fields of a file in the requests after the first one of a session."""


class AgentServer:
    """Server of an agent, which is asked for each turn: one ``POST`` with the task and the steps so far.

    Request: ``{"session", "task", "steps": [{"tool", "arguments", "observation"}]}``; the files' contents (base64) are
    in the first request of a session only. Reply: ``{"call": {"tool", "arguments"}}`` or ``{"answer": TEXT}``;
    either may have ``"usage"``, a :class:`UsageReport` on this turn. After an answer in words, a further request has
    this ``"answer"`` and ``"form_request"``, the message that asks for its form. ``token``: bearer token of every
    request.
    """

    code_hash = ""
    """Empty, because the code is not known."""

    def __init__(
        self, url: str, wire: WireSettings = DEFAULT_WIRE, token: str | None = None
    ) -> None:
        headers = {"content-type": "application/json"} | (
            {"authorization": f"Bearer {token}"} if token else {}
        )
        self._url, self._wire = url, wire
        self._transport = Transport(url, headers, wire)
        self._has_answered = False

    async def solve(
        self, task: dict[str, Any], call: CallTool, report: SendUsage, exchange: FormExchange
    ) -> None:
        """Ask the server for turns until it has answered, and submit its answer.

        Raises:
            EndpointUnreachable: no server takes connections at the address, or none any more.
            InfrastructureError: the server keeps failing, or its reply is neither a call nor an answer.
        """
        files = [await asyncio.to_thread(_with_content, file) for file in task["files"]]
        request = {"session": uuid4().hex, "task": {**task, "files": files}, "steps": list[Any]()}
        form: Mapping[str, str] | None = {}
        while form is not None:
            turn = await self._turn({**request, **form})
            request["task"] = {
                **task,
                "files": [{name: file[name] for name in _FACTS} for file in files],
            }
            if turn.usage is not None:
                report(turn.usage)
            if turn.call is not None and not form:
                observation = await call(turn.call.tool, turn.call.arguments)
                seen = {key: value for key, value in observation.items() if key != "pictures"}
                request["steps"].append({**turn.call.model_dump(), "observation": seen})
            else:
                form = exchange.submit(turn.answer)

    async def _turn(self, request: Mapping[str, Any]) -> "_Turn":
        text = await self._ask(dumps(request))
        try:
            turn = _Turn.model_validate(loads_strictly(text))
        except (NotJson, ValidationError) as error:
            reason = (
                first_error(error) if isinstance(error, ValidationError) else f"no JSON, {error}"
            )
            raise InfrastructureError(
                f"the reply of {self._url} is not a call or an answer: {reason}"
            ) from error
        if turn.call is None and turn.answer is None:
            raise InfrastructureError(f'the reply of {self._url} has neither "call" nor "answer"')
        return turn

    async def _ask(self, content: str) -> str:
        problem = ""
        for attempt in range(self._wire.attempts):
            if attempt:
                await asyncio.sleep(backoff_s(self._wire, attempt))
            try:
                response = await self._transport.post(content.encode())
            except (NoResponse, TimedOut, UntrustedServer) as error:
                problem = str(error)
                last = not self._has_answered or attempt == self._wire.attempts - 1
                if isinstance(error, NoResponse) and error.unreachable and last:
                    raise EndpointUnreachable(
                        f"no agent answers at {self._url}: {problem}",
                        hint="start the agent's server, then run the same command",
                    ) from error
                continue
            self._has_answered = True
            text = response.body.decode(errors="replace")
            if response.status < HTTPStatus.MULTIPLE_CHOICES:
                return text
            problem = f"HTTP {response.status}: {_failure_words(text)}"
            if response.status < HTTPStatus.BAD_REQUEST:
                target = response.headers.get("Location", "no address")
                problem = f"HTTP {response.status} to {target:.200}: redirects are not followed, give its own address"
            if (
                response.status < HTTPStatus.INTERNAL_SERVER_ERROR
                and response.status != HTTPStatus.TOO_MANY_REQUESTS
            ):
                break
        raise InfrastructureError(f"the agent at {self._url} failed: {problem}")

    async def close(self) -> None:
        await self._transport.close()


def _failure_words(body: str) -> str:
    """Return the begin of the body of a failure; of a traceback, its end, which says what failed."""
    if "Traceback (most recent call last)" not in body:
        return body[:_LONGEST_FAILURE]
    return last_words(body)[:_LONGEST_FAILURE]


def _with_content(file: Mapping[str, Any]) -> dict[str, Any]:
    facts = {key: value for key, value in file.items() if key != "path"}
    content = base64.b64encode(Path(file["path"]).read_bytes()).decode()
    return {
        **facts,
        "media_type": guess_type(file["name"])[0] or "application/octet-stream",
        "content": content,
    }
