"""Token counts of a reply, in the shapes that endpoints send them."""

import json
from typing import Any

import pytest

from agrotools.models import Completion
from agrotools.models.chat_format import read_reply


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 20, "completion_tokens": 151, "total_tokens": 171}, (20, 151)),
        # What the model thought is in the total alone (Gemini, xAI), and is billed as output.
        ({"prompt_tokens": 20, "completion_tokens": 151, "total_tokens": 553}, (20, 533)),
        ({"prompt_tokens": 21, "completion_tokens": 0, "total_tokens": 81}, (21, 60)),
        ({"prompt_tokens": 20, "completion_tokens": 151}, (20, 151)),
        ({"prompt_tokens": 20, "completion_tokens": 151, "total_tokens": None}, (20, 151)),
        ({"total_tokens": 81}, (0, 0)),
        ({"prompt_tokens": "20", "completion_tokens": -3, "total_tokens": 1e9}, (0, 0)),
        ({"prompt_tokens": 10**30, "completion_tokens": 7, "total_tokens": "x"}, (0, 7)),
        ([], (0, 0)),
        (None, (0, 0)),
    ],
)
def test_output_is_all_that_is_billed_as_output(usage: Any, counts: tuple[int, int]) -> None:
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": usage}
    completion = read_reply(json.dumps(body).encode())
    assert isinstance(completion, Completion)
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == counts


@pytest.mark.parametrize(
    ("usage", "body", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 15}}, {}, 15),
        ({"prompt_tokens_details": {"cached_tokens": 0}}, {}, 0),
        ({"prompt_tokens_details": {"cached_tokens": None}}, {}, None),
        ({"prompt_tokens_details": None}, {}, None),
        ({"prompt_cache_hit_tokens": 12, "prompt_cache_miss_tokens": 8}, {}, 12),
        ({"cached_tokens": 4}, {}, 4),
        ({"cache_read_input_tokens": 7, "cache_creation_input_tokens": 0}, {}, 7),
        ({}, {"timings": {"cache_n": 19, "prompt_n": 1}}, 19),
        ({"prompt_tokens_details": {"cached_tokens": 90}}, {}, 20),  # more than the prompt has
        ({"prompt_tokens": 0, "prompt_tokens_details": {"cached_tokens": 3}}, {}, None),
        ({}, {"timings": "none"}, None),
        ({}, {}, None),
    ],
)
def test_tokens_from_the_prompt_cache_are_read_under_every_name(
    usage: dict[str, Any], body: dict[str, Any], cached: int | None
) -> None:
    choices = [{"message": {"content": "x"}, "finish_reason": "stop"}]
    reply = {
        "choices": choices,
        "usage": {"prompt_tokens": 20, "completion_tokens": 1, **usage},
        **body,
    }
    completion = read_reply(json.dumps(reply).encode())
    assert isinstance(completion, Completion)
    assert completion.usage.cached_input_tokens == cached
    assert ("cached_input_tokens" in completion.usage.model_dump()) == (cached is not None)
