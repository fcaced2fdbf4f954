"""The base class of all records."""

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Immutable record; an unknown field is an error, so a misspelt key in a file is never silently ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
