"""Reference chains as a model fills them in: it is told the order of the tools, and gives thoughts and arguments.

The chain of the template stays the gold. A model's chain that is executed and agrees with it confirms it; one that
does not is for people to look at. Both are kept in ``traces.jsonl`` of the benchmark folder, one JSON object on a line:

``id``
    of the sample. Of several lines with the same ``id`` and ``model`` the last counts.
``model``
    as it was spelled on the command line.
``asked``
    hash of what the model was asked: prompts, question, files, order of tools, gold arguments. A trace whose hash is
    not that of its sample is out of date.
``steps``
    what the model did, one for each tool of the order, as far as it came:

    - ``tool``: the declared tool;
    - ``reference_step``: the step of the template's chain that it is compared with (from 0). Members of a group may
      come in any order, so it is the one of them that the arguments agree with best;
    - ``thought``, ``arguments`` (as the model gave them; null where none could be read), ``observation`` (of the real
      tool: ``result`` or ``error``, and ``artifacts``; null where nothing was run);
    - ``agrees``: for each argument whether it agrees with the reference, as ``agrotools.arg_acc`` compares them.
      Values that the reference takes from earlier steps (``$ref``) are those that the model's own calls returned;
    - ``agreed``: all of them agree and pass the tool's schema;
    - ``reason``: what differs or failed, in words; empty where all agrees;
    - ``tries``: how often the step was asked for (2 where the first output could not be used or the call failed).
``answer``
    the model's final answer; null where it gave none.
``answer_agrees``
    whether it is the answer that the model's own observations imply; null where that cannot be told (a figure, free
    text, a chain that broke off).
``answer_slots``
    the score of each slot but figures, by name.
``complete``
    every declared tool was called, every call ran without error, and an answer was given.
``left_open``
    values that the template's chain takes from earlier steps and the real tools did not return (null, or an error):
    no model could go on from there. References as they stand in the reference, e.g. ``steps[0].observation.weed_pct``.
``reason``
    why the chain broke off; empty where it did not.
"""

from agrotools.build.assist.reference_traces.records import TRACES_FILE, TraceRecord, TraceStep, asked_hash, read_traces
from agrotools.build.assist.reference_traces.summary import TraceSummary, summary_of

__all__ = ["TRACES_FILE", "TraceRecord", "TraceStep", "TraceSummary", "asked_hash", "read_traces", "summary_of"]
