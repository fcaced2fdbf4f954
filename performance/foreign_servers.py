"""``agrotools eval`` against two servers that nobody here wrote: llama.cpp's, and a litellm proxy in front of it.

Tool of developers; ``tests/performance/test_foreign_servers.py`` runs it.

    python performance/foreign_servers.py --servers DIR --setup     # a virtual environment with both, once
    python performance/foreign_servers.py --servers DIR
    python performance/foreign_servers.py --servers DIR --captured replies.jsonl

The model is the one of ``tiny_gguf.py``: right at temperature 0, so that every other outcome there is a fault of ours
or of the servers, and a mixture of real models' replies at temperature 1.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w
from faults import Command, Outcome, print_table, read_outcome, with_pictures

from support.fault_server import closed_port
from support.sums_benchmark import write_sums

HERE = Path(__file__).resolve().parent
KEY = "sk-litellm-1234"
NARROW, WIDE = 512, 4096
"""Tokens of a conversation."""
SAMPLES = 12
_STARTS_IN_S = 120.0
_WIRE = {"timeout_s": 20.0, "attempts": 3, "retry_wall_s": 30.0, "images": False}


@dataclass(frozen=True)
class Run:
    """An evaluation, and what it must become (:func:`_fault_of`)."""

    name: str
    server: str
    expected: str
    options: Mapping[str, Any] = field(default_factory=dict)
    benchmark: str = "sums"
    model: str = "tiny"
    key: str = KEY


def _runs() -> list[Run]:
    runs: list[Run] = []
    for server in ("llama.cpp", "litellm"):
        for protocol in ("react", "tool-calling"):
            for mode in ("no-tool", "step-by-step", "end-to-end"):
                way = {"protocol": protocol, "mode": mode}
                name = f"{server} {protocol} {mode}"
                right = "read" if mode == "step-by-step" else "right"
                runs.append(Run(name, server, right, way))
                drawn = {**way, "temperature": 1.0, "max_output_tokens": 200}
                runs.append(Run(f"{name} drawn", server, "drawn", drawn))
                # Without tools a question fits into the narrow context, with them none does.
                narrow = right if mode == "no-tool" else "warned"
                runs.append(Run(f"{name} {NARROW}", server, narrow, way, model=f"tiny-{NARROW}"))
        plain = {"mode": "no-tool"}
        runs += [
            Run(
                f"{server} drawn {NARROW}",
                server,
                "drawn",
                {**plain, "temperature": 1.0},
                model=f"tiny-{NARROW}",
            ),
            Run(
                f"{server} pictures", server, "refused", {**plain, "images": True}, "sums-pictures"
            ),
            Run(f"{server} one prompt too long", server, "context", plain, "sums-one-long"),
            Run(f"{server} all prompts too long", server, "warned", plain, "sums-long"),
            Run(f"{server} likelihoods", server, "right", {**plain, "top_logprobs": 5}),
            Run(f"{server} many at once", server, "right", {**plain, "concurrency": 32}),
            Run(f"{server} wrong key", f"{server} with a key", "refused", plain, key="sk-wrong"),
            # litellm answers 500 and nothing else to that.
            Run(f"{server} no key", f"{server} with a key", "invalid", plain, key=""),
            Run(
                f"{server} limit above all",
                server,
                "right",
                {**plain, "max_output_tokens": 100_000},
            ),
        ]
    plain = {"mode": "no-tool"}
    runs += [
        Run("litellm unknown model", "litellm", "refused", plain, model="nobody"),
        Run("litellm nothing behind", "litellm", "invalid", plain, model="nothing-behind"),
        Run("litellm times out", "litellm", "invalid", plain, model="impatient"),
        Run("litellm six a minute", "litellm", "invalid", plain, model="six-a-minute"),
        Run("litellm streams inside", "litellm", "right", plain, model="streaming"),
        Run("litellm wrong key behind", "litellm", "refused", plain, model="wrong-key-behind"),
    ]
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--servers", type=Path, required=True, help="folder of the virtual environment"
    )
    parser.add_argument(
        "--setup", action="store_true", help="make it and install both servers there"
    )
    parser.add_argument("--only", action="append", help="part of the name of a run; several times")
    parser.add_argument(
        "--captured", type=Path, help="also provoke errors one by one and add them to this file"
    )
    options = parser.parse_args()
    if options.setup:
        subprocess.run([sys.executable, "-m", "venv", options.servers], check=True)
        pip = [options.servers / "bin" / "python", "-m", "pip", "install", "-q"]
        subprocess.run([*pip, "xllamacpp", "litellm[proxy]", "gguf"], check=True)
    runs = [
        run for run in _runs() if not options.only or any(part in run.name for part in options.only)
    ]
    with tempfile.TemporaryDirectory(prefix="foreign-") as scratch, ExitStack() as stack:
        addresses = stack.enter_context(_servers(options.servers.resolve(), Path(scratch)))
        if options.captured:
            capture(addresses, options.captured)
        outcomes = _evaluate(runs, addresses, Path(scratch))
    print_table(outcomes)
    sys.exit(any(outcome.verdict == "wrong" for outcome in outcomes))


# --- the servers -----------------------------------------------------------------------------------------------------


@contextmanager
def _servers(environment: Path, scratch: Path) -> Iterator[dict[str, str]]:
    """Addresses by name of llama.cpp's server and the proxy, each also with a key."""
    python, model = environment / "bin" / "python", scratch / "tiny.gguf"
    subprocess.run([python, HERE / "tiny_gguf.py", model], check=True)
    wide, narrow, locked, proxy = closed_port(), closed_port(), closed_port(), closed_port()
    serve = [python, HERE / "tiny_gguf.py", model, "--port"]
    config = scratch / "litellm.json"
    silent = socket.create_server(("127.0.0.1", 0))  # accepts, and never answers
    config.write_text(json.dumps(_proxy_config(wide, narrow, locked, silent.getsockname()[1])))
    litellm = [environment / "bin" / "litellm", "--config", config, "--host", "127.0.0.1", "--port"]
    with silent, ExitStack() as stack:
        for name, port, command in (
            ("llamacpp", wide, [*serve, wide, "--context", WIDE]),
            ("llamacpp-narrow", narrow, [*serve, narrow, "--context", NARROW]),
            ("llamacpp-locked", locked, [*serve, locked, "--key", KEY]),
            ("litellm", proxy, [*litellm, proxy]),
        ):
            stack.enter_context(_running(name, port, command, scratch))
        yield {
            "llama.cpp": _address(wide),
            f"llama.cpp {NARROW}": _address(narrow),
            "llama.cpp with a key": _address(locked),
            "litellm": _address(proxy),
            f"litellm {NARROW}": _address(proxy),
            "litellm with a key": _address(proxy),
        }


def _address(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1"


def _proxy_config(wide: int, narrow: int, locked: int, silent: int) -> dict[str, Any]:
    behind = {"model": "openai/tiny", "api_base": _address(wide), "api_key": "none"}
    others = {
        f"tiny-{NARROW}": {"api_base": _address(narrow)},
        "nothing-behind": {"api_base": _address(closed_port())},
        "impatient": {"api_base": _address(silent), "timeout": 0.5},
        "six-a-minute": {"rpm": 6},
        "streaming": {"stream": True},
        "wrong-key-behind": {"api_base": _address(locked), "api_key": "sk-wrong"},
    }
    models = [
        {"model_name": name, "litellm_params": {**behind, **more}}
        for name, more in {"tiny": {}, **others}.items()
    ]
    return {
        "model_list": models,
        "general_settings": {"master_key": KEY},
        "router_settings": {"enable_pre_call_checks": True, "num_retries": 0},
    }


@contextmanager
def _running(name: str, port: int, command: list[Any], scratch: Path) -> Iterator[None]:
    """A server from when it listens to the end of the block."""
    quiet = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}
    with (scratch / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            list(map(str, command)), stdout=log, stderr=log, env=quiet, start_new_session=True
        )
    try:
        end = time.monotonic() + _STARTS_IN_S
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(
                    f"{name} does not start:\n{(scratch / f'{name}.log').read_text()[-3000:]}"
                )
            time.sleep(0.2)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


# --- the runs --------------------------------------------------------------------------------------------------------


def _evaluate(runs: list[Run], addresses: Mapping[str, str], scratch: Path) -> list[Outcome]:
    os.environ |= {"AGROTOOLS_CACHE": str(scratch / "cache"), "COLUMNS": "120"}
    for name in ("sums", "sums-pictures", "sums-one-long", "sums-long"):
        write_sums(scratch / name, SAMPLES)
    with_pictures(scratch / "sums-pictures")
    _lengthen(scratch / "sums-one-long", 1)
    _lengthen(scratch / "sums-long", SAMPLES)
    outcomes: list[Outcome] = []
    for run in runs:
        os.environ["OPENAI_API_KEY"] = run.key
        server = f"{run.server} {NARROW}" if run.model.endswith(str(NARROW)) else run.server
        folder = scratch / run.name.replace(" ", "-")
        config = scratch / "run.toml"
        config.write_text(tomli_w.dumps({**_WIRE, **run.options}))
        words = [
            "eval",
            str(scratch / run.benchmark),
            "--model",
            run.model,
            "--base-url",
            addresses[server],
        ]
        started = time.monotonic()
        code = Command(folder, [*words, "--config", str(config), "--backend", "recorded"]).run()
        seconds = time.monotonic() - started
        (folder / "ended.json").write_text(json.dumps({"exit": code, "seconds": round(seconds, 2)}))
        outcome = read_outcome(run.name, folder)
        outcome.why = _fault_of(run, outcome)
        outcome.verdict = "wrong" if outcome.why else "ok"
        outcomes.append(outcome)
        shutil.rmtree(folder)
    return outcomes


def _lengthen(folder: Path, samples: int) -> None:
    """Make the first questions of a benchmark longer than a conversation may be."""
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    for line in lines[:samples]:
        line["query"] = "Oats were sown early that year. " * 2000 + line["query"]
    (folder / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _fault_of(run: Run, outcome: Outcome) -> str:
    ends = set(outcome.samples)
    match run.expected:
        case "right" | "read":
            return "" if ends == {run.expected} and outcome.exit == 0 else f"not all {run.expected}"
        case "refused":
            missing = ends <= {"missing", "invalid"} and outcome.exit in (2, 3)
            return "" if missing and not outcome.tables else "not refused at once"
        case "invalid":
            spared = ends <= {"right", "invalid", "missing"}
            return (
                "" if spared and (outcome.exit or ends == {"right"}) else "scored against the model"
            )
        case "warned":
            return "" if outcome.exit == 3 and outcome.said else "nobody was told"
        case "context":
            alone = outcome.samples[0] in ("context", "invalid") and set(outcome.samples[1:]) == {
                "right"
            }
            return "" if alone else "not the one sample alone"
        case _:
            # llama.cpp answers a malformed call with status 500: that sample may be invalid, too.
            drawn = ends <= {
                "right",
                "read",
                "wrong",
                "unparseable",
                "no_form",
                "length",
                "max_steps",
                "invalid",
            }
            return "" if drawn else "ended as nothing that was drawn"


# --- errors, one by one ----------------------------------------------------------------------------------------------

_TOOL = {
    "type": "function",
    "function": {
        "name": "calculate",
        "description": "Compute.",
        "parameters": {
            "type": "object",
            "properties": {"expression": {"type": "string"}},
            "required": ["expression"],
        },
    },
}
_PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs="


def _ask(text: Any = "What is the mean?", **more: Any) -> dict[str, Any]:
    return {
        "model": "tiny",
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 50,
        "temperature": 0,
    } | more


_ILL_FORMED: dict[str, dict[str, Any]] = {
    "a temperature that is text": {"temperature": "hot"},
    "a message with an unknown role": {"messages": [{"role": "farmer", "content": "?"}]},
    "tools that are no list": {"tools": {"a": 1}},
    "a tool message without a call": {
        "messages": [{"role": "tool", "content": "3", "tool_call_id": "x"}]
    },
    "a negative token limit": {"max_tokens": -7},
    "a body without messages": {"messages": None},
}
_PROVOKED: dict[str, dict[str, Any] | bytes] = {
    "a right answer": _ask(),
    "a tool call": _ask(tools=[_TOOL]),
    "a token limit of 3": _ask(ignore_eos=True, max_tokens=3),
    "a reply to the end of the context": _ask(
        ignore_eos=True, max_tokens=100_000, model=f"tiny-{NARROW}"
    ),
    "a prompt longer than the context": _ask("oats " * 4000),
    "a picture for a model without eyes": _ask(
        [{"type": "image_url", "image_url": {"url": _PIXEL}}]
    ),
    "a body that is no JSON": b"{",
    **{how: _ask(**more) for how, more in _ILL_FORMED.items()},
    "likelihoods": _ask(logprobs=True, top_logprobs=3),
    "likelihoods beside tools": _ask(logprobs=True, top_logprobs=3, tools=[_TOOL]),
    "no key where one is needed": _ask(),
    "a model that nobody knows": _ask(model="nobody"),
    "a model with nothing behind it": _ask(model="nothing-behind"),
    "a model whose proxy is impatient": _ask(model="impatient"),
    "a model with the wrong key behind it": _ask(model="wrong-key-behind"),
    **{
        f"drawn, with tools, seed {seed}": _ask(tools=[_TOOL], temperature=1, seed=seed)
        for seed in range(12)
    },
    **{f"request {number} of six a minute": _ask(model="six-a-minute") for number in range(1, 9)},
}
_OF_CONTEXT = "a reply to the end of the context"
_OF_KEYS = "no key where one is needed"


def capture(addresses: Mapping[str, str], file: Path) -> None:
    """Add what each server says to each provocation to ``file``: one JSON object a line."""
    with file.open("a", encoding="utf-8") as lines:
        for vendor in ("llama.cpp", "litellm"):
            seen: set[str] = set()
            for how, body in _PROVOKED.items():
                locked = how == _OF_KEYS
                narrow = f" {NARROW}" if how == _OF_CONTEXT else ""
                url = (
                    f"{addresses[vendor + (' with a key' if locked else narrow)]}/chat/completions"
                )
                status, said = _post(url, body, "" if locked else KEY)
                # Replies differ in their ids and times alone.
                shape = re.sub(
                    r'"(?:id|created|timings|usage)":(?:"[^"]*"|\d+|\{.*?\}\}?)', "", said
                )
                if shape not in seen:
                    seen.add(shape)
                    line = {"vendor": vendor, "status": status, "body": said, "how": how}
                    lines.write(json.dumps(line, ensure_ascii=False) + "\n")


def _post(url: str, body: dict[str, Any] | bytes, key: str) -> tuple[int, str]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} | (
        {"Authorization": f"Bearer {key}"} if key else {}
    )
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, data, headers), timeout=60
        ) as response:
            return response.status, response.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


if __name__ == "__main__":
    main()
