"""Names of the columns of a file of predictions."""

import re
from typing import Any

IDS = ("id", "sample_id", "sample", "question", "query", "index")
"""Columns that identify the sample of a row, the surest first: an index may count rows of another file."""
QUESTIONS = ("question", "query")
"""Those of them that hold the question."""
PREDICTION = "prediction"
"""Column of whole predictions."""
EPOCH = "epoch"
"""Column that numbers the repeats of a sample."""
ERROR = "error"
"""Column that says why a row has no prediction."""
MODE = "mode"
"""Column that may say in which mode an answer was given: ``no-tool``, or ``end-to-end`` of a system with tools."""
STATED_MODES = frozenset(("no_tool", "end_to_end"))
"""Its values, as :func:`snake_case` writes them."""
MODEL = "model"
"""Column that says whose answer a row has."""
READ_BESIDE = (EPOCH, ERROR, "usage")
"""Columns that are read beside a prediction or a transcript."""
FORM_HINT = """one row for each sample, in JSON Lines or CSV, with its id and the prediction; in Python:
  with open("answers.jsonl", "w") as file:
      for name, text in answers.items():
          file.write(json.dumps({"id": name, "prediction": text}) + "\\n")"""
"""What to write instead of a file that is not read."""


def snake_case(name: str) -> str:
    """Return a name in lower case with underscores: ``sampleId`` and ``Sample id`` are ``sample_id``."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\s\-.]+", "_", split).lower()


def is_filled(value: Any) -> bool:
    """Return True for a cell that holds something."""
    return value is not None and value == value and str(value).strip() != ""
