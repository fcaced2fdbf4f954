"""Closing messages for imported answers, and the replies to them.

A model that agrotools runs is asked for its answer in the form, and once more for a value that is not read. The author
of a file of predictions gets the same messages in a file: one line of JSON for each answer that is not read whole, with
the conversation so far (``messages``). A file of replies has a line ``{"id": ..., "reply": ...}`` for each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from agrotools.agents.llm import closing_message, second_closing_message
from agrotools.core import MODES, Mode, Record, Reply, SampleView, UsageError
from agrotools.core.files import read_text, write_whole
from agrotools.core.form_item import asked_items
from agrotools.core.installed import plugins_of_slots
from agrotools.core.texts import count_text, first_names
from agrotools.runner.records import iter_records
from agrotools.text.answer_form import answer_form
from agrotools.text.answer_reader import as_form, is_complete, read_answer

ReplyKey = tuple[str, int, Mode | None]
"""Id of a sample, epoch and mode; None for a line that does not say in which mode."""


_NAMED = 5
"""Samples that an error names."""
_LINES_HINT = "fill in reply in the lines that score --unread writes of the same file of predictions, and nothing else"


class GivenReply(NamedTuple):
    """Reply to a closing message. ``messages``: what was sent, as the line of the reply says; None if it does not."""

    text: str
    messages: Any = None


class GivenReplies(NamedTuple):
    """Replies to closing messages by sample and epoch, and the file that they are from."""

    by_key: Mapping[ReplyKey, GivenReply]
    file: str = ""

    def of(self, sample: str, epoch: int, mode: Mode) -> GivenReply | None:
        """Return the reply to the closing message of an answer; None if there is none."""
        in_mode = self.by_key.get((sample, epoch, mode))
        return in_mode or self.by_key.get((sample, epoch, None))


NO_REPLIES = GivenReplies({})


def write_messages(runs: Sequence[Path], file: Path) -> int:
    """Write the message for each answer of ``runs`` that is not read whole, and return their number."""
    lines = [orjson.dumps(line) for run in runs for line in _messages(iter_records(run))]
    write_whole(file, b"".join(line + b"\n" for line in lines))
    return len(lines)


def _messages(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    for record in records:
        if messages := closing_conversation(record):
            yield {
                "id": record.sample.id,
                "epoch": record.epoch,
                "mode": record.mode,
                "messages": messages,
                "reply": "",
            }


def closing_conversation(record: Record) -> list[dict[str, str]]:
    """Return question, answer and closing message of an answer that is not read whole; nothing of other records.

    An answer in open text alone is read as it is, and nobody is asked twice.
    """
    sample, trajectory = record.sample, record.trajectory
    if trajectory is not None and trajectory.steps and trajectory.steps[-1].form_replies:
        return []
    text = trajectory.answer_text if trajectory is not None else None
    items = asked_items(sample.answer)
    has_form = any(not item.free_text for item in items) and not plugins_of_slots(sample.answer)
    if text is None or not has_form or is_complete(text, items):
        return []
    view = SampleView(
        id=sample.id,
        query=sample.query,
        files=(),
        toolset=(),
        answer_form=answer_form(sample.answer),
        form=items,
    )
    names_values = bool(read_answer(text, items))
    message = second_closing_message(view, text) if names_values else closing_message(view)
    said = (("user", sample.query), ("assistant", text), ("user", message))
    return [{"role": role, "content": content} for role, content in said]


def read_replies(file: Path) -> GivenReplies:
    """Read a file of replies: JSON Lines with ``id``, ``reply``, and ``epoch`` and ``mode`` where there are several.

    Raises:
        UsageError: the file cannot be read, a line has no ``id`` or ``reply``, or two lines are of one answer.
    """
    hint = 'one line for each: {"id": "sample-1", "reply": "severity: 14.1 %"}; score --unread FILE writes the messages'
    try:
        lines = read_text(file).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UsageError(f"{file} cannot be read: {reason}", hint=hint) from error
    replies: dict[ReplyKey, GivenReply] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
            mode = row.get("mode")
            key = str(row["id"]), int(row.get("epoch", 0)), mode if mode in MODES else None
            reply = row["reply"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"line {number} of {file} is no reply", hint=hint) from error
        if not isinstance(reply, str):
            raise UsageError(f"line {number} of {file}: the reply is no text", hint=hint)
        if key in replies:
            raise UsageError(f"line {number} of {file} is a second reply of {key[0]}", hint=hint)
        if reply.strip():
            replies[key] = GivenReply(reply, row.get("messages"))
    return GivenReplies(replies, file.name)


def check_replies(replies: GivenReplies, records: Iterable[Record]) -> None:
    """Check that each reply is to a closing message that agrotools sends: an answer that is read stays as it is.

    ``records``: those of the answers, before the replies.

    Raises:
        UsageError: a reply is to an answer that is read, or that is not there, or to other messages.
    """
    asked: dict[ReplyKey, list[dict[str, str]]] = {}
    for record in records:
        if messages := closing_conversation(record):
            for mode in (record.mode, None):
                asked[record.sample.id, record.epoch, mode] = messages
    if others := [key[0] for key in replies.by_key if key not in asked]:
        raise UsageError(
            f"{count_text(len(others), 'line')} of {replies.file} reply to no closing message, because the answers "
            f"are read or missing: {first_names(others, _NAMED)}",
            hint=f"remove these lines; {_LINES_HINT}",
        )
    changed = [
        key[0]
        for key, reply in replies.by_key.items()
        if reply.messages is not None and reply.messages != asked[key]
    ]
    if changed:
        raise UsageError(
            f"{count_text(len(changed), 'line')} of {replies.file} have other messages than those that agrotools "
            f"sends: {first_names(changed, _NAMED)}",
            hint=_LINES_HINT,
        )


def with_reply(record: Record, reply: str | None) -> Record:
    """Return a record whose answer has its form in the ``reply`` to the closing message; unchanged without one.

    It now was asked for its form, so that it ends as ``no_form`` if the reply does not complete it, as in a run.
    """
    trajectory = record.trajectory
    if reply is None or trajectory is None or not trajectory.steps:
        return record
    items = asked_items(record.sample.answer)
    *steps, last = trajectory.steps
    text = f"{last.text}\n\n{as_form(reply, items)}".strip()
    replies = (*last.form_replies, Reply(text=reply))
    answered = last.model_copy(update={"text": text, "form_replies": replies})
    ending = "answered" if is_complete(text, items) else "no_form"
    changed = trajectory.model_copy(update={"steps": (*steps, answered), "termination": ending})
    return record.model_copy(update={"trajectory": changed})
