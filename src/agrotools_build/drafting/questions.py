"""Drafts of questions: the model writes the words and names calls, or names calls for the words of a person."""

from collections.abc import Sequence
from functools import partial

from agrotools.agents.images import file_parts
from agrotools.core import Sample
from agrotools.formats.benchmark import Benchmark
from agrotools.loading.sample_checks import tool_or_none
from agrotools.models import Message, TextPart
from agrotools_build.composing import CannotCompose, StepRunner
from agrotools_build.composing.tolerance import EXACT_TOOLS
from agrotools_build.drafting.checking import Checked, checked, plain_parts
from agrotools_build.drafting.material import Labels, Noted, PictureGroup, pictures_of
from agrotools_build.drafting.prompting import as_data, prompt, tool_lines
from agrotools_build.drafting.reasons import OF_ERRORS, Dropped, dropped
from agrotools_build.drafting.replies import DraftedQuestion, read_reply, trace_of
from agrotools_build.drafting.request import DraftRequest, Earlier, Progressed
from agrotools_build.labels import labels_of_folder

_EARLIER_SHOWN = 3
"""Earlier questions that a prompt names, so that the next one is worded otherwise."""


class QuestionDrafts:
    """Requests for questions about the pictures of a benchmark folder.

    ``seeds``: questions of people; each is asked for once, with its own words. ``shows_pictures``: the model sees them.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        runner: StepRunner,
        earlier: Earlier,
        *,
        seeds: Sequence[str] = (),
        shows_pictures: bool = True,
    ) -> None:
        samples: list[Sample] = list(benchmark.samples)
        self._pictures = pictures_of(samples)
        self._labels = Labels(labels_of_folder(benchmark))
        self._root, self._runner, self._earlier = benchmark.root, runner, earlier
        self._seeds, self._shows_pictures = tuple(seeds), shows_pictures

    def requests(self, most: int) -> list[DraftRequest]:
        """Return at most so many requests; none without pictures."""
        if not self._pictures:
            return []
        count = min(most, len(self._seeds)) if self._seeds else most
        return [self._request(place) for place in range(count)]

    def _request(self, place: int) -> DraftRequest:
        seed = self._seeds[place] if self._seeds else ""
        pictures, noted = self._about(place, seed)
        topic = _topic(pictures, noted, seed)
        return DraftRequest(
            number=place + 1,
            kind="question",
            subject=" ".join([*(file.path for file in pictures.files), topic, seed]).strip(),
            family=pictures.family,
            messages=partial(self._messages, pictures, noted, topic, seed),
            check=partial(self._check, place + 1, pictures, seed),
        )

    def _about(self, place: int, seed: str) -> tuple[PictureGroup, Noted | None]:
        """Return the pictures of a draft and the quantity to ask about: those that share most words with a seed.

        None: a person's question says what it asks about, or nothing was noted.
        """
        if seed:
            words = {*seed.casefold().split()}

            def shared(pictures: PictureGroup) -> int:
                return len(words & {*_words_of(pictures).casefold().split()})

            most = max(map(shared, self._pictures))
            fitting = [each for each in self._pictures if shared(each) == most]
            return fitting[place % len(fitting)], None
        turn, index = divmod(place, len(self._pictures))
        pictures = self._pictures[index]
        noted = pictures.noted
        return pictures, noted[(turn + index) % len(noted)] if noted else None

    def _tools_for(self, pictures: PictureGroup) -> list[str]:
        """Return the tools that a model is offered: those that give what people noted, and those that calculate."""
        installed = [tool for tool in self._runner.toolset if tool_or_none(tool) is not None]
        noted = {each.tool for each in pictures.noted}
        known = [tool for tool in installed if tool in noted]
        if not known:
            return installed
        return [*known, *(tool for tool in ("calculate",) if tool in installed)]

    def _messages(
        self, pictures: PictureGroup, noted: Noted | None, topic: str, seed: str
    ) -> list[Message]:
        placed = [
            file.model_copy(update={"path": str(self._root / file.path)}) for file in pictures.files
        ]
        seen = file_parts(placed, images=self._shows_pictures)
        lines = [as_data(part.text) for part in seen if isinstance(part, TextPart)]
        text = prompt(
            "question",
            files=lines,
            noted=[_noted_line(each) for each in pictures.noted] or ["nothing"],
            tools=tool_lines(self._tools_for(pictures), pictures.noted),
            topic=topic,
            given=noted if noted and _is_wordable(noted, pictures) else None,
            names=", ".join(file.name for file in pictures.files),
            seed=as_data(seed),
            earlier=self._earlier.wordings[-_EARLIER_SHOWN:],
        )
        shown = [part for part in seen if not isinstance(part, TextPart)]
        return [Message(role="user", content=(TextPart(text=text), *shown))]

    async def _check(
        self, number: int, pictures: PictureGroup, seed: str, reply: str, progressed: Progressed
    ) -> Checked:
        draft = read_reply(reply, DraftedQuestion)
        if seed:
            draft = draft.model_copy(update={"question": seed})
        parts = plain_parts(draft, pictures, is_persons=bool(seed))
        steps = trace_of(draft.steps)
        if not steps:
            raise Dropped("no_steps", "no call is named")
        try:
            trace = await self._runner.run_trace(pictures.files, steps)
        except CannotCompose as error:
            raise dropped(error) from error
        for place, step in enumerate(trace.steps, start=1):
            error = step.observation.error if step.observation else None
            if error is not None:
                reason = OF_ERRORS.get(error.kind, "call_fails")
                raise Dropped(reason, f"step {place} ({step.tool}): {error.message}")
        if all(step.tool in EXACT_TOOLS for step in trace.steps):
            raise Dropped("idle_step", "no call looks at a file")
        progressed.ran = True
        sample_id = f"draft-{number:04d}"
        made = checked(sample_id, draft, parts, trace.steps, pictures, self._labels, self._runner)
        if other := self._earlier.questions.copy_of(made.sample):
            raise Dropped("near_copy", f"nearly the same as {other}")
        return made


def _is_wordable(noted: Noted, pictures: PictureGroup) -> bool:
    """Return True if the call that gives what was noted is one of words about these pictures.

    Of numbers and boxes the question would have to speak, and a result of another call is not to be told.
    """
    if not all(isinstance(value, str) for value in noted.arguments.values()):
        return False
    return {*noted.files} <= {(file.name, str(file.sha256)) for file in pictures.files}


def _topic(pictures: PictureGroup, noted: Noted | None, seed: str) -> str:
    """Return what a question is to ask about, as words; empty for a person's question."""
    if seed:
        return ""
    return as_data(noted.quantity) if noted else pictures.task_type.replace("_", " ")


def _words_of(pictures: PictureGroup) -> str:
    return " ".join(
        [pictures.task_type.replace("_", " "), *(each.quantity for each in pictures.noted)]
    )


def _noted_line(noted: Noted) -> str:
    """Return what people noted, without its value: a quantity and its unit, or the names that it may have."""
    unit = f" in {noted.unit}" if noted.unit else ""
    names = f" (one of: {', '.join(noted.choices)})" if noted.choices else ""
    return as_data(f"{noted.quantity}{unit}{names}")
