"""Models that answer prompts. The HTTP client is loaded only when a model is created."""

from agrotools.models.base import (
    DEFAULT_WIRE,
    Completion,
    ContentPart,
    FinishReason,
    ImagePart,
    Message,
    Model,
    ModelSettings,
    RequestedCall,
    TextPart,
    WireSettings,
    WireStats,
)
from agrotools.models.endpoint import Endpoint, make_model
