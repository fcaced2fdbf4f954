"""An agent as a graph of LangGraph (langgraph 1.2, langchain-openai 1.7). See docs/agents.md for the command.

The model is that of any OpenAI-compatible endpoint: OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL.
"""

import os
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from agrotools import Task

os.environ["LANGSMITH_TRACING"] = "false"  # traces would be sent to LangSmith


def to_tool(function: Callable[..., Any]) -> StructuredTool:
    """Return a tool of a task as a tool of LangChain."""

    async def run(**arguments: Any) -> tuple[str, list[Any]]:
        reply = await function.reply(**arguments)
        return reply.text, reply.pictures

    return StructuredTool(
        name=function.spec.name,
        description=function.spec.description,
        args_schema=dict(function.spec.parameters),
        coroutine=run,
        response_format="content_and_artifact",
    )


def to_message(text: str, pictures: Iterable[Any]) -> HumanMessage:
    urls = [{"type": "image_url", "image_url": {"url": each.url}} for each in pictures]
    return HumanMessage([{"type": "text", "text": text}, *urls])


async def solve(task: Task, form: str | None = None) -> str:
    """Return the agent's last message; with ``form``, the task asks for the form of its answer, and has no tools."""
    tools = [to_tool(function) for function in task.tools.values()]
    model = ChatOpenAI(model=os.environ["OPENAI_MODEL"]).bind_tools(tools)

    async def ask(state: MessagesState) -> dict[str, Any]:
        messages = state["messages"]
        results = takewhile(lambda message: message.type == "tool", reversed(messages))
        pictures = [picture for message in results for picture in message.artifact or ()]
        shown = [to_message("Pictures in the results:", pictures)] if pictures else []
        reply = await model.ainvoke([*messages, *shown])
        if used := reply.usage_metadata:
            task.report_usage(
                input_tokens=used["input_tokens"],
                output_tokens=used["output_tokens"],
                cached_input_tokens=used.get("input_token_details", {}).get("cache_read", 0),
                model=os.environ["OPENAI_MODEL"],
            )
        return {"messages": [*shown, reply]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    config = {"recursion_limit": 3 * task.max_steps}
    result = await graph.compile().ainvoke(
        {"messages": [to_message(task.prompt, [] if form else task.pictures)]}, config
    )
    return result["messages"][-1].text
