"""Answer and form of an agent of another program, however it takes the closing message."""

from collections.abc import Mapping
from typing import Any

from agrotools.agents.llm import FORM_REQUESTS, closing_message
from agrotools.agents.modes import kept_text
from agrotools.agents.task import answer_text
from agrotools.core import Answer, Reply, SampleView
from agrotools.text.submission import is_complete


class FormExchange:
    """Answer of an agent on a sample, and its replies to the closing messages, which ask for the answer form."""

    def __init__(self, view: SampleView) -> None:
        self._view, self._forms = view, list[str]()
        self.words: str | None = None
        """The answer in the agent's own words; None before it."""

    def submit(self, given: object) -> dict[str, str] | None:
        """Take the answer, then the replies; return ``form_request``, the next closing message, with the ``answer``.

        A dict as the answer is the form. The form is asked for again if a value is missing; None is the end.
        """
        text, items = answer_text(given), self._view.form
        is_form = bool(items) and (self.words is not None or isinstance(given, Mapping))
        is_last = not items or (is_form and (self.words is None or is_complete(text, items, listed=True)))
        if is_form:
            self._forms.append(text)
        if self.words is None:
            self.words = "" if is_form else text
        if is_last or len(self._forms) == FORM_REQUESTS:
            return None
        return {"form_request": closing_message(self._view), "answer": self.words}

    def answer(self) -> Answer:
        """Return what was submitted. An agent that takes no closing message may have given its values at once."""
        text, items = "\n\n".join(filter(None, (self.words, *self._forms[-1:]))), self._view.form
        formless = bool(items) and not self._forms and not is_complete(text, items)
        replies = tuple(Reply(text=kept_text(form)) for form in self._forms)
        return Answer(text=text, form_replies=replies, formless=formless)


def form_task(task: Mapping[str, Any], request: Mapping[str, str]) -> dict[str, Any]:
    """Return the task of the second call of a function, which copies its answer into the form."""
    prompt = "\n\n".join([task["prompt"], f"Your answer: {request['answer']}", request["form_request"]])
    return {**task, **request, "tools": [], "prompt": prompt}
