"""Having MLCommons' own library look at a ``croissant.json``."""

import contextlib
import io
import warnings
from pathlib import Path


def check_croissant(path: Path) -> list[str] | None:
    """Errors and warnings of ``mlcroissant`` on the file, first line of each; None where it is not installed."""
    try:
        import mlcroissant
    except ImportError:
        return None
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            issues = mlcroissant.Dataset(str(path)).metadata.ctx.issues
        except mlcroissant.ValidationError as error:
            return str(error).strip().splitlines()
    return sorted({*issues.errors, *issues.warnings})
