"""The openai SDK over aiohttp, as many tasks as requests may be open, retries as they come, no records.

python openai_sdk.py WORKLOAD FOLDER URL CONCURRENCY SCRATCH
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, DefaultAioHttpClient
from shared import RIGHTS, SETTINGS, calculate, closing, conversations, report, tools


async def answer_of(
    client: AsyncOpenAI, messages: list[Any], settings: dict[str, Any], form: str
) -> str:
    while True:
        completion = await client.chat.completions.create(messages=messages, **settings)
        message = completion.choices[0].message
        if not message.tool_calls and not form:
            return message.content or ""
        messages.append(message.to_dict())
        if not message.tool_calls:
            messages.append({"role": "user", "content": form})
            form = ""
        for call in message.tool_calls or ():
            result = calculate(json.loads(call.function.arguments)["expression"])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


async def main() -> None:
    folder, url, concurrency = Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    offered, form = tools(folder), closing(folder)
    settings = SETTINGS | ({"tools": offered} if offered else {})
    todo = conversations(folder)
    texts: list[str] = []

    async def work() -> None:
        for messages in todo:
            texts.append(await answer_of(client, messages, settings, form))

    async with AsyncOpenAI(base_url=url, http_client=DefaultAioHttpClient()) as client:
        await asyncio.gather(*(work() for _ in range(concurrency)))
    report(sum(RIGHTS[sys.argv[1]] in text for text in texts))


if __name__ == "__main__":
    asyncio.run(main())
