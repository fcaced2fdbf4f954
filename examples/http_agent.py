"""A server with an agent. It uses no model: it describes each picture and answers with the numbers in the results.

python http_agent.py 9000 &                                                                       (in this folder)
agrotools eval embedded --quick --limit 6 --mode end-to-end --model http://127.0.0.1:9000/agent

The server stores nothing, because each request contains the question and all steps so far. It needs only Python.
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def next_action(turn: dict[str, Any]) -> dict[str, Any]:
    """Return the next action for a sample: a call, the answer, or the filled answer form."""
    task, steps = turn["task"], turn["steps"]
    if form := turn.get("form_request"):
        names = re.findall(r"^(\w+): <", form, re.MULTILINE)
        pairs = zip(names, turn["answer"].split(), strict=False)
        return {"answer": "\n".join(f"{name}: {number}" for name, number in pairs)}
    pictures = [file["name"] for file in task["files"] if file["kind"] == "image"]
    if len(steps) < len(pictures):
        return {"call": {"tool": "describe_region", "arguments": {"image": pictures[len(steps)]}}}
    results = [step["observation"].get("result", {}) for step in steps]
    return {"answer": " ".join(re.findall(r"\d+\.?\d*", json.dumps(results)))}


class Handler(BaseHTTPRequestHandler):
    """Handler of requests, one for each turn of a sample."""

    def do_POST(self) -> None:
        """Answer a turn (JSON) with an action (JSON)."""
        turn = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = json.dumps(next_action(turn)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
