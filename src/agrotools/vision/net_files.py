"""Where the nets of the package lie, and reading the description beside a net's weights."""

from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agrotools.vision.weights_file import unusable

_LARGEST_DESCRIPTION = 2**20


class Described(BaseModel):
    """A part of a description, which holds more than its reader needs."""

    model_config = ConfigDict(frozen=True, extra="ignore")


Description = TypeVar("Description", bound=Described)


def nets_folder() -> Path:
    """Where the nets of the package lie."""
    return Path(str(files("agrotools"))) / "data" / "nets"


def read_description(path: Path, kind: type[Description], *, what: str, hint: str) -> Description:
    """A description as it stands.

    Args:
        what: whose it is, as a message begins ("the fruit net").
        hint: what to do where it cannot be used.

    Raises:
        ToolError: ``backend_unavailable``: missing, over 1 MiB, or no description of that kind.
    """
    try:
        if path.stat().st_size > _LARGEST_DESCRIPTION:
            raise unusable(what, "has a description that is none: it is too large", hint)
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise unusable(what, f"cannot be read: {error.strerror or error}", hint) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise unusable(what, f"has a faulty description: {where or 'it'}: {first['msg']}", hint) from error
