"""ONNX graphs on the processor: from checked bytes, never from a path, so that no graph reads files."""

import os
from collections.abc import Collection
from typing import Any

from agrotools.core import ToolError
from agrotools.vision.weights_file import unusable

THREADS = "AGROTOOLS_THREADS"
"""Variable that says how many threads a graph may use; one where it is not set."""


def open_session(content: bytes, *, takes: str, gives: Collection[str], what: str, hint: str) -> Any:
    """An ``onnxruntime.InferenceSession``.

    Args:
        takes: name of the one input, float32.
        gives: names of outputs that must be there.
        what: whose graph it is, as a message begins.
        hint: what to do where it cannot be used.

    Raises:
        ToolError: ``backend_unavailable``: no ONNX Runtime, no graph that runs, other inputs or outputs.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise ToolError("backend_unavailable", "nets need onnxruntime", hint="pip install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get(THREADS, "1"))
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        inputs = {one.name: one.type for one in session.get_inputs()}
        outputs = {one.name for one in session.get_outputs()}
    except Exception as error:  # ONNX Runtime's own kinds of error, whatever the graph leads it to
        raise unusable(what, "are no graph that can be run", hint) from error
    if inputs != {takes: "tensor(float)"} or not set(gives) <= outputs:
        raise unusable(what, "take or give something else than the description says", hint)
    return session
