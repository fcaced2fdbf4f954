"""The typed error that a call of a tool ends with."""

from collections.abc import Callable

import pytest

from agrotools.core import ToolError


def tool_error(call: Callable[..., object], *arguments: object, **named: object) -> ToolError:
    """The error of a call that has to fail."""
    with pytest.raises(ToolError) as caught:
        call(*arguments, **named)
    return caught.value
