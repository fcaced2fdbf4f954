"""The base of every noun: an immutable, strictly validated record."""

from pydantic import BaseModel, ConfigDict


class Noun(BaseModel):
    """Immutable; an unknown field is an error, so a misspelt key in a file is never silently ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
