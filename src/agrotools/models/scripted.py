"""A model that replies from a script: for tests, demonstrations and plug-in authors. Needs no network."""

import json
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from agrotools.core import FrozenModel, ToolSpec, UsageError
from agrotools.models.base import Completion, FinishReason, Message, ModelSettings, RequestedCall, WireStats

Responder = Callable[[Sequence[Message], Sequence[ToolSpec], ModelSettings], Completion | str]


class ScriptedCall(FrozenModel):
    """A native call of a scripted reply."""

    name: str
    arguments: dict[str, Any] | str = {}


class ScriptedReply(FrozenModel):
    """One reply: text, native calls, or both."""

    text: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    finish_reason: FinishReason | None = None

    def completion(self) -> Completion:
        calls = tuple(
            RequestedCall(
                name=call.name,
                arguments=call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
                id=f"call{index:05d}",
            )
            for index, call in enumerate(self.tool_calls)
        )
        reason = self.finish_reason or ("tool_calls" if calls else "stop")
        return Completion(text=self.text, tool_calls=calls, finish_reason=reason)


class Scene(FrozenModel):
    """Replies to conversations whose first user message contains ``when`` (any, if empty).

    The reply is chosen by the number of assistant messages so far, so that scenes hold in every mode and under any
    concurrency; past the end the last one repeats.
    """

    when: str = ""
    replies: tuple[ScriptedReply | str, ...] = Field(min_length=1)


class ScriptedModel:
    """Replies from scenes, the first that fits, or from a Python callable."""

    def __init__(self, script: Sequence[Scene] | Responder, *, name: str = "scripted") -> None:
        self._script = script
        self._name = name
        self.base_url = ""
        self.stats = WireStats()

    @property
    def name(self) -> str:
        return self._name

    @classmethod
    def from_file(cls, path: Path) -> "ScriptedModel":
        """Read a script: ``.toml`` with ``[[scenes]]``, ``.json`` with a list, ``.jsonl`` with one entry a line.

        An entry is a scene (``when``, ``replies``); a list of replies alone is one scene that fits everything.

        Raises:
            UsageError: the file cannot be read as a script.
        """
        return cls(_read_scenes(path), name=f"scripted:{path.name}")

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        self.stats.replies += 1
        if callable(self._script):
            reply = self._script(messages, tools, settings)
            return Completion(text=reply) if isinstance(reply, str) else reply
        question = next((message.text for message in messages if message.role == "user"), "")
        turn = sum(message.role == "assistant" for message in messages)
        for scene in self._script:
            if scene.when in question:
                reply = scene.replies[min(turn, len(scene.replies) - 1)]
                return Completion(text=reply) if isinstance(reply, str) else reply.completion()
        raise UsageError(f"{self._name} has no scene for this question", hint="add a scene without `when`")

    async def close(self) -> None:
        return None


def _read_scenes(path: Path) -> tuple[Scene, ...]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            entries: Any = tomllib.loads(text).get("scenes", [])
        elif path.suffix == ".jsonl":
            entries = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            entries = json.loads(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the script {path}: {error}", hint="it must be TOML, JSON or JSONL") from error
    if not isinstance(entries, list) or not entries:
        raise UsageError(
            f"the script {path} has no scenes", hint='give a list of replies: ["first reply", "second reply"]'
        )
    if not any(isinstance(entry, dict) and "replies" in entry for entry in entries):
        entries = [{"replies": entries}]
    try:
        return tuple(Scene.model_validate(entry) for entry in entries)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"the script {path} is wrong at {where or 'an entry'}: {first['msg']}") from error
