"""Protocols: how calls and observations are written in a conversation. Both give the same actions."""

from agrotools.agents.protocols import react, tool_calling
from agrotools.agents.protocols.conversation import Conversation
from agrotools.core import Protocol

PROTOCOLS: dict[Protocol, Conversation] = {"react": react.CONVERSATION, "tool-calling": tool_calling.CONVERSATION}

__all__ = ["PROTOCOLS", "Conversation"]
