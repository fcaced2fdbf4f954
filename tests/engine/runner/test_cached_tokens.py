"""The share of prompt tokens that a server read from its prompt cache: in records, manifest, tables and exports."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from support.command import run_command
from support.openai_server import Body, serving

pytestmark = pytest.mark.process

DRAWN = Path(__file__).resolve().parents[2] / "golden" / "benchmarks" / "drawn"
TOKENS = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
CACHED: dict[str, tuple[dict[str, Any], int | None, str]] = {
    "reported": (
        {"prompt_tokens_details": {"cached_tokens": 250}},
        250,
        "25 % cached",
    ),
    "none": ({"prompt_tokens_details": {"cached_tokens": 0}}, 0, "0 % cached"),
    "silent": ({}, None, "cached tokens not reported"),
}


@pytest.mark.parametrize("name", CACHED)
def test_the_share_stands_in_manifest_scores_and_tables(name: str, tmp_path: Path):
    more, cached, text = CACHED[name]

    def reply(_body: Body) -> web.Response:
        choice = {
            "message": {"role": "assistant", "content": "Final Answer: 5"},
            "finish_reason": "stop",
        }
        return web.json_response({"choices": [choice], "usage": TOKENS | more})

    with serving(reply) as server:
        words = [
            "eval",
            DRAWN,
            "-m",
            "m",
            "--base-url",
            server.base_url,
            "--mode",
            "no-tool",
            "--out",
            "run",
        ]
        for limit in (1, 2):  # the second command resumes
            done = run_command(*words, "--limit", limit, cwd=tmp_path)
        n = len(server.requests)
    assert text in done.stdout, done.stdout + done.stderr
    usage = json.loads((tmp_path / "run" / "manifest.json").read_bytes())["usage"]
    assert usage == {"input_tokens": 1000 * n, "output_tokens": 10 * n} | (
        {} if cached is None else {"cached_tokens": cached * n}
    )
    spent = json.loads((tmp_path / "run" / "scores.json").read_bytes())["summary"]["modes"][
        "no-tool"
    ]["counts"]["spent"]
    assert spent.get("cached_input_tokens", {}).get("total") == (
        None if cached is None else cached * n
    )
    assert text in run_command("score", "run", "--details", cwd=tmp_path).stdout
