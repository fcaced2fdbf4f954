"""Replies of vendors' servers, one a row, each with what it must become.

``origin`` says where a row is from: ``captured`` (a server's reply as somebody has posted it, at ``where``),
``documentation`` (the vendor's page, or one about it, at ``where``), or ``made`` (in a shape or in words that servers
use, with no source at hand). The bodies around captured sentences are in the vendor's usual shape.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from agrotools.models import Completion, ImagePart, Message, TextPart
from agrotools.models.chat_format import MalformedReply, read_reply
from agrotools.models.refusals import Rejection, RequestParts, read_error

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for file in sorted((Path(__file__).parent / "vendor_replies").glob("*.jsonl"))
    for line in file.read_text(encoding="utf-8").splitlines()
]
QUESTION = "How many trees are in the picture?"


def read(row: dict[str, Any]) -> Completion | Rejection:
    """The row's reply, to a request with an image and tools."""
    body = (
        row["body"] if isinstance(row["body"], str) else json.dumps(row["body"], ensure_ascii=False)
    )
    question = (
        TextPart(text=row.get("question", QUESTION)),
        ImagePart(url="data:image/png;base64,AA=="),
    )
    asked = RequestParts(
        [Message(role="user", content=question)],
        tools=True,
        output_limit=row.get("max_tokens", 4096),
    )
    if row["status"] == 200:
        return read_reply(body.encode(), request=asked)
    return read_error(row["status"], body.encode(), asked)


def became(row: dict[str, Any]) -> dict[str, Any]:
    """What the row is read as, in the table's words."""
    try:
        reply = read(row)
    except MalformedReply as error:
        kind = "malformed" if error.passing else "unreadable"
        return {"becomes": "broken off" if "broke the reply off" in str(error) else kind}
    if isinstance(reply, Completion):
        return {"becomes": reply.finish_reason}
    room = {"room": reply.room} if reply.room is not None and not reply.certain else {}
    return {"becomes": reply.verdict} | room | ({"certain": True} if reply.certain else {})


def name_of(row: dict[str, Any]) -> str:
    return f"{row['vendor']}-{row['status']}-{row['becomes']}"


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_reply_becomes_what_the_table_says(row: dict[str, Any]) -> None:
    assert became(row) == {key: row[key] for key in ("becomes", "room", "certain") if key in row}, (
        row["body"]
    )


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["becomes"] in ("images", "tools")], ids=name_of
)
def test_what_was_not_sent_is_not_refused(row: dict[str, Any]) -> None:
    body = row["body"] if isinstance(row["body"], str) else json.dumps(row["body"])
    assert read_error(row["status"], body.encode()).verdict not in ("images", "tools")


@pytest.mark.parametrize("row", [row for row in ROWS if row["becomes"] == "context"], ids=name_of)
def test_words_of_the_question_are_no_words_of_the_server(row: dict[str, Any]) -> None:
    quoted = json.dumps(row["body"]).replace(",", "")
    asked = RequestParts([Message.of("user", f"What does this mean? {quoted}")])
    body = json.dumps(
        {"error": {"message": f"cannot tokenize 'What does this mean? {quoted}'"}}
    ).encode()
    assert read_error(500, body, asked).verdict == "retry"
