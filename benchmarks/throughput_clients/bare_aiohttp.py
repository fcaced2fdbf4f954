"""The least that a client can do: one aiohttp session, as many tasks as requests may be open, orjson, no records.

    python bare_aiohttp.py WORKLOAD FOLDER URL CONCURRENCY SCRATCH

Images are encoded once per sample; the tool is evaluated in place.
"""

import asyncio
import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson


def conversations(folder: Path) -> Iterator[list[dict[str, Any]]]:
    with (folder / "requests.jsonl").open("rb") as lines:
        for line in lines:
            messages = orjson.loads(line)["messages"]
            for part in messages[1]["content"]:
                if isinstance(part, dict) and "file" in part:
                    data = base64.b64encode((folder / part.pop("file")).read_bytes()).decode()
                    part |= {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}
            yield messages


def calculate(arguments: str) -> str:
    return orjson.dumps({"value": eval(orjson.loads(arguments)["expression"], {"__builtins__": {}})}).decode()


async def answer_of(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> str:
    while True:
        async with session.post(url, data=orjson.dumps(body)) as response:
            response.raise_for_status()
            message = orjson.loads(await response.read())["choices"][0]["message"]
        calls = message.get("tool_calls")
        if not calls:
            return message["content"]
        body["messages"].append(message)
        for call in calls:
            result = calculate(call["function"]["arguments"])
            body["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": result})


async def main() -> None:
    folder, url, concurrency = Path(sys.argv[2]), f"{sys.argv[3]}/chat/completions", int(sys.argv[4])
    tools = orjson.loads((folder / "tools.json").read_bytes())
    settings: dict[str, Any] = {"model": "mock", "temperature": 0.0, "max_tokens": 4096}
    if tools:
        settings["tools"] = tools
    todo = conversations(folder)
    texts: list[str] = []

    async def work() -> None:
        for messages in todo:
            texts.append(await answer_of(session, url, {"model": "mock", "messages": messages, **settings}))

    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector, headers={"Content-Type": "application/json"}) as session:
        await asyncio.gather(*(work() for _ in range(concurrency)))
    print(json.dumps({"right": sum("answer: 14" in text for text in texts)}))


if __name__ == "__main__":
    asyncio.run(main())
