"""End of a model's own turn in a reply.

A server that does not stop at the end of a turn (wrong chat template, missing stop token) lets the model play the
turns of others, and further ones of its own. Only the first turn is the reply. These are the marks of its end, from
the published chat templates of the model families.
"""

import re

TOKENS = (
    r"</s>|<eos>|<end_of_turn>|<｜end▁of▁sentence｜>"
    r"|<\|(?:im_end|eot_id|end_of_text|endoftext|return|END_OF_TURN_TOKEN)\|>"
)
"""Special tokens with which chat templates end a turn."""
_HEADERS = (
    r"<start_of_turn>|<｜(?:User|Assistant)｜>|\[INST\]"
    r"|<\|(?:im_start|start_header_id|start_of_role|START_OF_TURN_TOKEN|user|system|observation|assistant)\|>"
    # In OpenAI's harmony format a reply has several messages of the assistant.
    r"|<\|start\|>(?:user|system|developer)|<\|end\|>(?!\s*<\|start\|>assistant)"
)
"""Special tokens with which chat templates begin a turn."""
_ROLE_WITHOUT_TOKEN = r"(?<=\S)assistant[ \t]*\n[ \t]*\n"
"""Role whose tokens the server removed, glued to the reply."""
_TOKEN = re.compile(
    rf"\S\s*(?:{TOKENS}|{_HEADERS}|{_ROLE_WITHOUT_TOKEN}|\n[ \t]*\n(?:User|Human):)"
)
_PLAIN = re.compile(
    r"""(?<=[^\s:：])\s*\n[ \t]*(?:
        \#\#\#?[ \t]*(?:instruction|user|human|assistant|system|response)\b[ \t]*:?
      | [*_]{0,2}(?:user|human|question|q)[*_]{0,2}[ \t]*:
      | (?:assistant|user)[ \t]*\n
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Turn of somebody else in plain text. Some are also words of an answer or of a thought: see :func:`first_answer`."""
_GLUED_USER = re.compile(r"(?<=\S)user[ \t]*\n(?=(?:[^\n]*\n){1,20}?[ \t]*assistant[ \t]*\n)")
"""The same, glued to the reply, if a turn of the assistant follows soon."""


def own_turn(text: str) -> str:
    """Return a reply up to the first special token, or role without its token, that ends the model's own turn."""
    end = _TOKEN.search(text)
    return text[: end.start() + 1] if end else text


def first_answer(text: str) -> str:
    """Return an answer without the turns in plain text behind it (``User:``, ``### Instruction:``, ``Question:``...).

    Only for what follows a mark of the answer, or for a reply that can hold nothing but an answer: before, a model may
    repeat the question.
    """
    ends = [found.start() for pattern in (_PLAIN, _GLUED_USER) if (found := pattern.search(text))]
    return text[: min(ends)] if ends else text


def runs_on(text: str) -> bool:
    """Whether more than special tokens follows the end of the model's own turn."""
    rest = re.sub(rf"{TOKENS}|<\|end\|>|<pad>", "", text[len(own_turn(text)) :])
    return bool(rest.strip())
