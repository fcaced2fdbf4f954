"""The base class of all records."""

from pydantic import BaseModel, ConfigDict, ValidationError


class FrozenModel(BaseModel):
    """Immutable record; an unknown field is an error, so a misspelt key in a file is never silently ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


def first_fault(error: ValidationError) -> str:
    """The first field that is wrong and what is wrong with it: ``slots.0.value: Input should be a number``."""
    detail = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, detail['loc'])) or 'the whole'}: {detail['msg']}"
