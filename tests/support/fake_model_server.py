"""A program that answers ``value: N`` to "... plot N?".

It has the command line of ``llama-server``.
``--slow S`` starts after S seconds; ``--die TEXT`` prints TEXT and fails; ``--die-after N`` fails at request N unless a
file ``spare`` is in the folder; ``--tokens N`` is counted for each prompt; ``--stubborn`` ignores SIGTERM; ``--fork``
starts a process of its own session.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("-m", required=True)
parser.add_argument("--host", required=True)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--slow", type=float, default=0)
parser.add_argument("--latency", type=float, default=0)
parser.add_argument("--tokens", type=int, default=0)
parser.add_argument("-np")
parser.add_argument("--die", default="")
parser.add_argument("--die-after", type=int)
parser.add_argument("--stubborn", action="store_true")
parser.add_argument("--fork", action="store_true")
parser.add_argument("--version", action="version", version="version: 1234 (fake)")
options = parser.parse_args()
answered = 0


class Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        found = self.path == "/health"
        self._send({"status": "ok"} if found else {}, 200 if found else 404)

    def do_POST(self) -> None:
        global answered
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = json.dumps(body["messages"])
        time.sleep(options.latency)
        if "plot " in text:
            answered += 1
            print("answered", flush=True)
            if (
                options.die_after is not None
                and answered > options.die_after
                and not Path("spare").exists()
            ):
                print("segmentation fault in layer 7", flush=True)
                os._exit(3)
        number = text.split("plot ")[1].split("?")[0] if "plot " in text else "OK"
        message = {"role": "assistant", "content": f"value: {number}"}
        usage = {"prompt_tokens": options.tokens, "completion_tokens": 0}
        self._send(
            {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
        )

    def _send(self, body: object, status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


print("pid", os.getpid(), flush=True)
if options.stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if options.fork:
    other = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    )
    print("pid", other.pid, flush=True)
if options.die:
    sys.exit(options.die)
time.sleep(options.slow)
ThreadingHTTPServer((options.host, options.port), Handler).serve_forever()
