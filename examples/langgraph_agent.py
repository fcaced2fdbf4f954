"""An agent as a graph of LangGraph (langgraph 1.2, langchain-openai 1.7). See docs/agents.md for the command.

The model is that of any OpenAI-compatible endpoint: OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL.
"""

import os
from collections.abc import Callable
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

    async def run(**arguments: Any) -> list[dict[str, Any]]:
        reply = await function.reply(**arguments)
        pictures = [{"type": "image_url", "image_url": {"url": each.url}} for each in reply.pictures]
        return [{"type": "text", "text": reply.text}, *pictures]

    spec = function.spec
    return StructuredTool(
        name=spec.name, description=spec.description, args_schema=dict(spec.parameters), coroutine=run
    )


async def solve(task: Task) -> str:
    """Return the agent's last message."""
    tools = [to_tool(function) for function in task.tools.values()]
    model = ChatOpenAI(model=os.environ["OPENAI_MODEL"]).bind_tools(tools)

    async def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    pictures = [{"type": "image_url", "image_url": {"url": each.url}} for each in task.pictures]
    question = HumanMessage([{"type": "text", "text": task.prompt}, *pictures])
    config = {"recursion_limit": 3 * task.max_steps}
    result = await graph.compile().ainvoke({"messages": [question]}, config)
    return result["messages"][-1].text
