"""Web application for blind grading: the pages and requests of the review, with answers in place of samples."""

import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError
from starlette.exceptions import HTTPException

from agrotools.build.review.agreement import ReviewJournal
from agrotools.build.review.app import Review, render
from agrotools.build.review.grading import (
    Item,
    Sheet,
    all_graded,
    grades_by,
    open_sheet,
    shown_steps,
    summarise_grades,
    summary_parts,
)
from agrotools.build.review.presenting import present
from agrotools.build.review.server import Doorkeeper, RunningReview, review_server
from agrotools.core import ReferenceStep, Step, first_error
from agrotools.core.base import count_text
from agrotools.report.html.runs import name_of
from agrotools.report.judges import Grade

_LATER = "Agreement, and the results of the runs, are shown once you have graded all."


class Grading(Review):
    """Blind grading of the answers of ``sheet``; ``reports``: address of the report page of each run."""

    page = "grade.html.j2"

    def __init__(
        self,
        sheet: Sheet,
        journal: ReviewJournal[Grade],
        doorkeeper: Doorkeeper,
        reviewer: str = "",
        reports: Mapping[Path, str] | None = None,
        home: str = "",
    ) -> None:
        super().__init__(sheet.material, journal, doorkeeper, reviewer)
        self.sheet, self.reports, self.home = sheet, reports or {}, home
        self.start = ""
        """Key of the answer that the page shows first."""

    def show_first(self, sample: str) -> None:
        """Let the page begin with the first answer to ``sample``, if there is one."""
        keys = (key for key, item in self.sheet.items.items() if item.record.sample.id == sample)
        self.start = next(keys, self.start)

    def page_values(self) -> dict[str, Any]:
        scheme = self.sheet.scheme
        return {"rubrics": scheme.rubric, "errors": scheme.error, "start": self.start, "home": self.home}

    def _index(self, reviewer: str) -> dict[str, Any]:
        self.journal.refresh()
        grades: list[Grade] = self.journal.decisions()
        n_graded = grades_by(self.sheet, grades).get(reviewer, 0)
        if n_graded < len(self.sheet.items):  # the agreement with others would show how they graded
            parts = [
                {"text": f"You graded {n_graded} of {count_text(len(self.sheet.items), 'answer')}."},
                {"text": _LATER},
            ]
        else:
            parts = list(summary_parts(self.sheet, summarise_grades(self.sheet, grades)))
        rows = [self._row(grades, item, reviewer) for item in self.sheet.items.values()]
        return {"csrf": self.doorkeeper.csrf, "samples": rows, "summary": parts}

    def _row(self, grades: Sequence[Grade], item: Item, reviewer: str) -> dict[str, Any]:
        facts = self.sheet.material.facts[item.key]
        row = {"id": item.key, "label": item.label, "task": facts.task_type, "source": facts.source}
        row |= {"query": facts.query, "flags": [], "standing": "", "content": facts.content}
        mine = self._grade_of(grades, item.key, reviewer)
        return row | {"mine": "grade" if mine else None, "reviewers": int(mine is not None)}

    def _grade_of(self, grades: Sequence[Grade], key: str, reviewer: str) -> Grade | None:
        digest = self.sheet.scheme.digest
        of = (each for each in grades if each.sample == key and each.content == digest and each.reviewer == reviewer)
        return next(of, None)

    def _render_sample(self, key: str) -> str:
        item = self.sheet.items[key]
        sample = item.record.sample
        trajectory = item.record.trajectory
        shown = present(self.material, sample, *self._files_of(sample), key=item.key)
        shown |= {
            "label": item.label,
            "rubrics": [each.id for each in self.sheet.scheme.rubrics_of(item)],
            "text": self.sheet.masked((trajectory.answer if trajectory else None) or ""),
            "taken": shown_steps(self.sheet, item),
        }
        return render("answer.html.j2", shown=shown)

    def _decisions_on(self, sample_id: str, reviewer: str) -> dict[str, Any]:
        grades: list[Grade] = self.journal.decisions()
        mine = self._grade_of(grades, sample_id, reviewer)
        item = self.sheet.items[sample_id]
        sources = [self._source(item, *each) for each in item.runs] if all_graded(self.sheet, grades) else []
        return {"mine": mine.model_dump(mode="json") if mine else None, "others": [], "hidden": 0, "sources": sources}

    def _source(self, item: Item, at: int, epoch: int) -> dict[str, str]:
        run = self.sheet.runs[at]
        place = quote(f"{name_of(run)}/{item.record.mode}/{item.record.sample.id}/{epoch}")
        report = self.reports.get(run)
        return {"name": self.sheet.names()[at], "link": f"{report}#samples?id={place}" if report else ""}

    def _store_decision(self, body: bytes) -> dict[str, Any]:
        try:
            grade = Grade.model_validate_json(body)
        except ValidationError as error:
            raise HTTPException(422, first_error(error).removeprefix("the whole: ")) from error
        if (item := self.sheet.items.get(grade.sample)) is None:
            raise HTTPException(404, "there is no such answer")
        if grade.content != self.sheet.scheme.digest:
            raise HTTPException(409, "the rubrics are not those that were shown: reload the page")
        if complaint := self.sheet.scheme.complaint(item, grade):
            raise HTTPException(422, complaint)
        self.journal.append(grade.model_copy(update={"at": datetime.now(UTC).isoformat(timespec="seconds")}))
        return {"saved": True, "row": self._row(self.journal.decisions(), item, grade.reviewer)}

    def _steps(self, key: str) -> Sequence[ReferenceStep | Step]:
        return self.sheet.items[key].calls


class GradingPages:
    """Grading pages that a server of reports opens on demand in threads, one for each set of runs."""

    def __init__(self, data_root: Path | None = None) -> None:
        self._data_root = data_root
        self._running: dict[frozenset[Path], RunningReview] = {}
        self._opening = threading.Lock()

    def open(self, reports: Mapping[Path, str], home: str, sample: str = "") -> str:
        """Return a new address of the page for ``reports`` (addresses by run), with the answers to ``sample`` first."""
        with self._opening:
            running = self._running.get(frozenset(reports))
            if running is None:
                sheet = open_sheet(list(reports), data_root=self._data_root)
                journal = ReviewJournal(sheet.material.journal, Grade)
                running = review_server(lambda door: Grading(sheet, journal, door, "", reports, home), journal)
                threading.Thread(target=running.server.run, args=([running.place],), daemon=True).start()
                self._running[frozenset(reports)] = running
        assert isinstance(running.page, Grading)
        running.page.show_first(sample)
        return running.page.doorkeeper.new_address()
