"""A vision model for tools that run in this process."""

import json
from typing import Any

from agrotools.calling.services import Question


class Eye:
    """Gives these replies, one after the other, and keeps the questions."""

    name = "eye"

    def __init__(self, *replies: Any) -> None:
        self.replies = [reply if isinstance(reply, str) else json.dumps(reply) for reply in replies]
        self.asked: list[Question] = []

    def ask(self, question: Question) -> str:
        self.asked.append(question)
        return self.replies.pop(0)
