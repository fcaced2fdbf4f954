"""Protocols: how calls and observations are written in a conversation. All give the same actions."""

from agrotools.agents.protocols.conversation import PROTOCOLS, Conversation

__all__ = ["PROTOCOLS", "Conversation"]
