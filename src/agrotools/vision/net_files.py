"""Where the nets of the package lie, and reading a net: the description, and the weights that lie beside it."""

from collections.abc import Collection
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from agrotools.vision.onnx_session import open_session
from agrotools.vision.weights_file import checked_bytes, unusable

_LARGEST_DESCRIPTION = 2**20


class Described(BaseModel):
    """A part of a description, which holds more than its reader needs."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class DescribedNet(Described):
    """What every net's description says: its name, and its weights by file and hash."""

    name: str
    weights: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+\.onnx$")]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


Description = TypeVar("Description", bound=DescribedNet)


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


def read_whole_net(
    path: Path, kind: type[Description], *, gives: Collection[str], what: str, hint: str
) -> tuple[Description, Any]:
    """A description and the session of its weights, which take ``image``.

    Args:
        gives: names of outputs that must be there; ``what`` and ``hint`` as for :func:`read_description`.

    Raises:
        ToolError: ``backend_unavailable``: a file is missing, no description, other weights, no graph that fits.
    """
    info = read_description(path, kind, what=what, hint=hint)
    weights = f"the weights of {what}"
    content = checked_bytes(path.parent / info.weights, info.sha256, what=weights, hint=hint)
    return info, open_session(content, takes="image", gives=gives, what=weights, hint=hint)
