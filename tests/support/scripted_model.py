"""An OpenAI-compatible endpoint that plays scripted episodes of ``agrotools_build.Env``, one call a turn."""

import json
from collections import defaultdict
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agrotools_build import Env
from support.env_episodes import Episode, Played


class ScriptedModel:
    """What a model would say: the episodes of a question in turn, in each conversation the next one.

    Conversations come one after the other. The last message of each is the name of the episode.
    """

    def __init__(self, episodes: Mapping[str, Episode]) -> None:
        self.seen: dict[str, list[str]] = {}
        """Results of the calls by name of the episode, as the model was shown them."""
        self.tools: list[dict[str, Any]] = []
        self._episodes = episodes
        self._asked: dict[str, list[str]] = defaultdict(list)
        for name, episode in episodes.items():
            self._asked[Env().reset(**episode.row)].append(name)
        self._current = ""

    def reply(self, prompt: str, results: list[str]) -> tuple[str, dict[str, Any]] | str:
        """Return the next call, or the last message."""
        if not results:
            names = self._asked[prompt]
            self._current = names[0]
            names.append(names.pop(0))
        calls = self._episodes[self._current].calls
        self.seen[self._current] = results
        return calls[len(results)] if len(results) < len(calls) else self._current

    def chat_completion(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a request of the chat completions API."""
        prompt = next(_text(each) for each in body["messages"] if each["role"] == "user")
        results = [_text(each) for each in body["messages"] if each["role"] == "tool"]
        self.tools = [tool["function"] for tool in body.get("tools", ())]
        said, message = self.reply(prompt, results), {"role": "assistant", "content": None}
        if isinstance(said, str):
            message["content"] = said
        else:
            function = {"name": said[0], "arguments": json.dumps(said[1])}
            call = {"id": f"call_{len(results)}", "type": "function", "function": function}
            message["tool_calls"] = [call]
        reason = "stop" if isinstance(said, str) else "tool_calls"
        return {
            "id": "1", "object": "chat.completion", "created": 1, "model": body["model"],
            "choices": [{"index": 0, "finish_reason": reason, "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }  # fmt: skip

    def response(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a request of the Responses API."""
        items = body["input"]
        prompt = next(_text(each) for each in items if each.get("role") == "user")
        results = [each["output"] for each in items if each.get("type") == "function_call_output"]
        self.tools = list(body.get("tools", ()))
        said, at = self.reply(prompt, results), str(len(results))
        if isinstance(said, str):
            content = [{"type": "output_text", "text": said, "annotations": []}]
            output = {
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        else:
            given = {"name": said[0], "arguments": json.dumps(said[1])}
            output = {"type": "function_call", "call_id": at, "status": "completed", **given}
        return {
            "id": "1", "object": "response", "created_at": 1, "model": body["model"], "output": [output | {"id": at}],
            "tools": self.tools, "tool_choice": "auto", "parallel_tool_calls": False, "status": "completed",
        }  # fmt: skip

    def server(self) -> ThreadingHTTPServer:
        """Return a server of this machine that is not yet running."""
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                kind, is_response = "application/json", self.path.endswith("/responses")
                whole = model.response(body) if is_response else model.chat_completion(body)
                answer = json.dumps(whole).encode()
                if body.get("stream"):
                    answer, kind = _streamed(whole).encode(), "text/event-stream"
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        return ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def played(self, rewards: Mapping[str, float]) -> dict[str, Played]:
        """Results and rewards of the episodes by name."""
        return {name: Played(self.seen[name], reward) for name, reward in rewards.items()}


def _streamed(whole: dict[str, Any]) -> str:
    """Return a completion as a stream of two events: the message and the end."""
    choice = whole["choices"][0]
    for at, call in enumerate(choice["message"].get("tool_calls", ())):
        call["index"] = at
    rest = whole | {"object": "chat.completion.chunk"}
    message = {"index": 0, "delta": choice["message"], "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    events = [rest | {"choices": [each], "usage": None} for each in (message, end)]
    events.append(rest | {"choices": []})
    return "".join(f"data: {json.dumps(each)}\n\n" for each in events) + "data: [DONE]\n\n"


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
