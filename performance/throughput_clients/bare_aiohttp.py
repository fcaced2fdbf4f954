"""The least that a client can do: one aiohttp session, as many tasks as requests may be open, orjson, no records.

python bare_aiohttp.py WORKLOAD FOLDER URL CONCURRENCY SCRATCH
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from shared import RIGHTS, SETTINGS, calculate, closing, conversations, report, tools


async def answer_of(
    session: aiohttp.ClientSession, url: str, body: dict[str, Any], form: str
) -> str:
    while True:
        async with session.post(url, data=orjson.dumps(body)) as response:
            response.raise_for_status()
            message = orjson.loads(await response.read())["choices"][0]["message"]
        calls = message.get("tool_calls")
        if not calls and not form:
            return message["content"]
        body["messages"].append(message)
        if not calls:
            body["messages"].append({"role": "user", "content": form})
            form = ""
        for call in calls or ():
            result = calculate(orjson.loads(call["function"]["arguments"])["expression"])
            body["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": result})


async def main() -> None:
    folder, url, concurrency = (
        Path(sys.argv[2]),
        f"{sys.argv[3]}/chat/completions",
        int(sys.argv[4]),
    )
    offered, form = tools(folder), closing(folder)
    settings = SETTINGS | ({"tools": offered} if offered else {})
    todo = conversations(folder, orjson.loads)
    texts: list[str] = []

    async def work() -> None:
        for messages in todo:
            texts.append(await answer_of(session, url, {"messages": messages, **settings}, form))

    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(
        connector=connector, headers={"Content-Type": "application/json"}
    ) as session:
        await asyncio.gather(*(work() for _ in range(concurrency)))
    report(sum(RIGHTS[sys.argv[1]] in text for text in texts))


if __name__ == "__main__":
    asyncio.run(main())
