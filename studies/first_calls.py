"""First calls of a model: how often its first reply is a call that its tool accepts, and one of the right tool.

Table of docs/protocols.md, "Protocols"; some of its replies are in tests/real_models.

    python studies/first_calls.py --base-url http://127.0.0.1:8080/v1 --model NAME [--protocol react] [--limit 60]
        [--benchmark embedded] [--samples FILE] [--stop TEXT]... [--replies FILE]

One request a question, without pictures, at temperature 0: what a list of tools, its wording or the number of its
arguments do to a model shows in the first call, in a tenth of the time of whole samples. Later calls depend on what
the model makes of the results.

* ``call``: the reply is read as a call (and not as an answer, or as nothing).
* ``right tool``: the tool of a call of the reference.
* ``valid``: the tool accepts the arguments; files have to be those of the question.

``--samples`` names a file of sample ids, one a line, so that two versions are asked the same questions. ``--stop`` ends
a reply at this text: a model that goes on to invent results costs time and changes nothing about its first call.
``--replies`` writes the raw replies and how they were read, one line of JSON each; ``tests/real_models/record.py`` adds
them to the recorded replies that every version of the parser has to read alike.
"""

import argparse
import asyncio
import json
import statistics
from pathlib import Path
from typing import Any

from agrotools.agents.llm import LLMAgent, raw_reply
from agrotools.calling import get_tool
from agrotools.core import AgrotoolsError, CallTools, Sample, SampleView, ToolCall
from agrotools.loading import load_benchmark
from agrotools.models import Completion, Endpoint, ModelSettings, WireSettings, priced_model
from agrotools.runner.plan import work_items


def is_valid(call: ToolCall, view: SampleView) -> bool:
    """Return True if the tool takes the arguments of ``call``, and every text that ends like a file is a file."""
    try:
        get_tool(call.tool).validate(call.arguments)
    except AgrotoolsError:
        return False
    known = {file.name for file in view.files}
    endings = {Path(name).suffix for name in known}
    texts = [value for value in call.arguments.values() if isinstance(value, str)]
    for value in call.arguments.values():
        if isinstance(value, list):
            texts += [item for item in value if isinstance(item, str)]
    return all(text in known for text in texts if Path(text).suffix in endings - {""})


def row_of(
    sample: Sample, view: SampleView, agent: LLMAgent, completion: Completion
) -> dict[str, Any]:
    """Return how the first reply to a sample is read."""
    action = agent._action(completion, view)  # what the model wrote, before any closing message
    call = action.calls[0] if isinstance(action, CallTools) else None
    needed = sample.reference.tools if sample.reference else ()
    return {
        "sample": sample.id,
        "finish_reason": completion.finish_reason,
        "call": call is not None,
        "right_tool": call is not None and call.tool in needed,
        "valid": call is not None and is_valid(call, view),
        "cut": completion.finish_reason == "length",
        "input_tokens": completion.usage.input_tokens,
        "output_tokens": completion.usage.output_tokens,
        "seconds": round(completion.seconds, 2),
        "read_as": call.model_dump(mode="json") if call else type(action).__name__,
        "reply": raw_reply(completion).text,
    }


async def ask(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each question; they are asked once, one after another."""
    benchmark = load_benchmark(given.benchmark)
    only = given.samples.read_text(encoding="utf-8").split() if given.samples else []
    plan = work_items(benchmark.samples, ["end-to-end"], 1, limit=given.limit, only=only)
    wire = WireSettings(concurrency=1)
    model = priced_model(Endpoint(given.model, given.base_url, None, wire, None, None)).model
    extra = {"stop": given.stop} if given.stop else {}
    settings = ModelSettings(temperature=0, max_output_tokens=given.max_output_tokens, extra=extra)
    agent = LLMAgent(model, "end-to-end", given.protocol, settings, images=False)
    setting = {"model": given.model, "benchmark": given.benchmark, "protocol": given.protocol}
    rows: list[dict[str, Any]] = []
    try:
        for item in plan:
            sample = benchmark.prepare(item.sample)
            view = benchmark.view(sample, "end-to-end")
            messages, tools = await agent.request_for(view, ())
            completion = await model.generate(messages, tools, settings)
            rows.append(setting | row_of(sample, view, agent, completion))
            print(f"{len(rows)} of {len(plan)}: {sample.id}", flush=True)
            if given.replies:
                with given.replies.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1], ensure_ascii=False) + "\n")
    finally:
        await model.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--benchmark", default="embedded")
    parser.add_argument("--protocol", default="react", choices=("react", "tool-calling"))
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--max-output-tokens", type=int, default=256)
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--stop", action="append")
    parser.add_argument("--replies", type=Path)
    rows = asyncio.run(ask(parser.parse_args()))
    n = len(rows)
    for name in ("call", "right_tool", "valid", "cut"):
        print(f"{name.replace('_', ' '):12} {sum(row[name] for row in rows)} of {n}")
    for name in ("input_tokens", "output_tokens", "seconds"):
        print(
            f"{name.replace('_', ' '):12} median {statistics.median(row[name] for row in rows):g}"
        )


if __name__ == "__main__":
    main()
