"""What the routes answer with: JSON, pictures, and errors as one line for the page."""

from typing import Any, cast

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agrotools.build.review.agreement import standing_of
from agrotools.build.review.decisions import Decision
from agrotools.build.review.pictures import SIDES_PX, Rendered
from agrotools.core import AgrotoolsError
from agrotools.report.html.places import Absent


def row_state(made: list[Decision], reviewer: str) -> dict[str, Any]:
    """What the list shows of the decisions on a sample. What others think counts only once one has decided."""
    mine = next((each for each in made if each.reviewer == reviewer), None)
    standing = standing_of(made) if mine else "undecided"
    return {"mine": mine.verdict if mine else None, "standing": standing, "reviewers": len(made)}


def picture_size(request: Request) -> str:
    """The size that a request asks for, one of :data:`SIDES_PX`."""
    size = request.query_params.get("size", "small")
    if size not in SIDES_PX:
        raise HTTPException(404, "there is no such size")
    return size


def picture_answer(rendered: Rendered | Absent) -> Response:
    """A picture, or why there is none."""
    if isinstance(rendered, Absent):
        raise HTTPException(404, rendered.reason)
    return Response(
        rendered.content, media_type=rendered.media_type, headers={"Cache-Control": "private, max-age=3600"}
    )


def json_answer(content: object, status_code: int = 200) -> Response:
    """``content`` as JSON."""
    return Response(orjson.dumps(content), status_code=status_code, media_type="application/json")


async def said(_: Request, error: Exception) -> Response:
    """A refusal with its reason."""
    refused = cast(HTTPException, error)
    return json_answer({"error": refused.detail}, refused.status_code)


async def failed(_: Request, error: Exception) -> Response:
    """The disk or the benchmark failed: the page keeps what it has and tries again."""
    if isinstance(error, AgrotoolsError):
        return json_answer({"error": str(error)}, 500)
    assert isinstance(error, OSError)
    return json_answer({"error": f"not stored: {error.strerror or error}"}, 507)
