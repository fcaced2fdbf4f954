"""Checks of what replies say about themselves: which model wrote them, and how much of the prompt it has read."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from agrotools.core import InfrastructureError
from agrotools.models.base import Completion, Message, WireStats, json_bytes, prompt_length
from agrotools.models.refusals import one_line

_QUANTISATION = r"[-_.:@](?:i?q\d\w*|(?:b|f|fp|int|nf)\d{1,2}\w*|awq|gptq|gguf|mlx|latest|free)(?=$|[-_.:@])"
_VERSION = re.compile(r"[-_.:@](?:v?\d[\d.-]*|preview[\w.-]*|exp[\w.-]*)")
_MOST_NAMES = 20
_MOST_CHARACTERS_PER_TOKEN = 10
"""No tokenizer reads more of a prompt with one token, on average: English text has 4 to 5, JSON 2 to 3."""
_FEWEST_TOKENS = 256
"""Smaller counts are no context length: the server does not count."""
_LEAST_GROWTH, _LEAST_SHARE = 400, 0.25
"""Characters, and share of a prompt, by which a longer one must have more tokens, even with another tokenizer."""


def note_served(stats: WireStats, base_url: str, asked: str, completion: Completion) -> None:
    """Record what a reply says about its origin, and warn if another model than ``asked`` wrote it."""
    for kind, name in completion.served.items():
        other = kind == "model" and not is_same_model(asked, name)
        note(stats, kind, name, f"{base_url} was asked for {asked} and answers as {name}" if other else "")


def note(stats: WireStats, kind: str, name: str, warning: str) -> None:
    """Record a name, with a warning if it is new."""
    names = stats.served.setdefault(kind, [])
    if name not in names and len(names) < _MOST_NAMES:
        names.append(name)
        stats.warnings += [f"warning: {one_line(warning)}"] if warning else []


def is_same_model(asked: str, served: str) -> bool:
    """True if both names may be of one model: dates, versions, folders, providers and quantisations may differ."""
    one, other = sorted((_plain(asked), _plain(served)), key=len)
    return one == other or (other.startswith(one) and bool(_VERSION.fullmatch(other, len(one))))


def _plain(name: str) -> str:
    name = re.split(r"[/\\]", name.strip().lower().removesuffix(".gguf"))[-1]
    return re.sub(_QUANTISATION, "", re.sub(_QUANTISATION, "", name))


class PromptCount(NamedTuple):
    """Length of a prompt in tokens, as the endpoint counts them (0: it does not), and in characters.

    ``thinking``: characters of earlier reasoning in it, which servers leave out of later prompts.
    """

    tokens: int
    characters: int
    images: int
    thinking: int


def count_prompt(messages: Sequence[Message], completion: Completion) -> PromptCount:
    """Return the length of the prompt that was answered with ``completion``; images have no characters."""
    received = [message.received for message in messages if message.received]
    beside = [each[name] for each in received for name in each if name not in ("content", "tool_calls")]
    inline = sum(len(message.text) for message in messages if "</think" in message.text)
    return PromptCount(completion.usage.input_tokens, *prompt_length(messages), len(json_bytes(beside)) + inline)


def check_prompt(counts: Sequence[PromptCount]) -> None:
    """Raise an InfrastructureError if the counts of a conversation show that its last prompt was cut."""
    tokens, characters, _, thinking = counts[-1]
    cut = ""
    if characters - thinking > _MOST_CHARACTERS_PER_TOKEN * tokens:
        cut = f"{characters:,} characters are counted as {tokens:,} tokens"
    for before in counts[:-1]:
        least = max(_LEAST_GROWTH, _LEAST_SHARE * before.characters) + 4 * thinking
        if tokens <= before.tokens and characters - before.characters > least:
            cut = f"it grew from {before.characters:,} to {characters:,} characters, and stays at {tokens:,} tokens"
    if cut and tokens >= _FEWEST_TOKENS:
        raise InfrastructureError(
            f"the endpoint cut the prompt: {cut}",
            hint="serve the model with a longer context; Ollama cuts at OLLAMA_CONTEXT_LENGTH, e.g. 32768",
            problem="request",
        )
