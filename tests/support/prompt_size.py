"""Tokens of the instructions with the list of tools, as Qwen2.5 reads them."""

import json
from collections.abc import Sequence

from agrotools.agents.llm import PROTOCOLS
from agrotools.core import Protocol, ToolSpec
from agrotools.models.base import function_list

CHARACTERS_PER_TOKEN = 3.47
"""Measured with the tokenizer of Qwen2.5-Coder: react 12,689 by 3,676 = 3.45, tool-calling 13,855 by 3,991 = 3.47."""
_BEFORE = """

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""
_AFTER = """
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""


def system_text(protocol: Protocol, specs: Sequence[ToolSpec]) -> str:
    """Return the system message that the chat template of Qwen2.5 writes, the tools included."""
    text = PROTOCOLS[protocol].system(specs)
    if PROTOCOLS[protocol].native:
        text += (
            _BEFORE
            + "\n".join(json.dumps(each, ensure_ascii=False) for each in function_list(specs))
            + _AFTER
        )
    return f"<|im_start|>system\n{text}<|im_end|>\n"
