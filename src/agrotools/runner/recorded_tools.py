"""The tool back-end ``recorded``: observations of the reference instead of tools that run."""

from agrotools.core import ErrorInfo, Observation, ReferenceStep, Sample, ToolCall, ToolOutcome
from agrotools.core.record import literal_value


class RecordedTools:
    """Tool that answers the calls of one sample with the recorded observations of matching reference calls.

    It lets a benchmark run end to end if its tools cannot, e.g. without weights, keys or a network. A call without a
    match gets an error, and no tool is executed. If the reference repeats a call, its observations are returned in
    order.
    """

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._returned: set[int] = set()

    def run(self, call: ToolCall) -> ToolOutcome:
        """Return the observation of the reference call that ``call`` agrees with, or an error if there is none."""
        steps = self._sample.reference.steps if self._sample.reference else ()
        left = [place for place in range(len(steps)) if place not in self._returned]
        places = (*left, *sorted(self._returned, reverse=True))
        place = next((place for place in places if self._matches(call, steps[place])), None)
        if place is None:
            return _failed(
                f"no call of the reference is {call.tool} with these arguments, and nothing else was recorded",
                f"the tool is not run here; for results of its own: --backend {call.tool}=offline",
            )
        self._returned.add(place)
        observation = steps[place].observation
        if observation is None or observation.empty:
            return _failed("nothing was recorded of this call", "run the tool itself: choose another --backend")
        # Artifacts of a recorded observation are in no workspace: a later call can name them, but not open them.
        return ToolOutcome(observation.model_copy(update={"artifacts": ()}), 0.0, recorded=True)

    def _matches(self, call: ToolCall, step: ReferenceStep) -> bool:
        if call.tool != step.tool:
            return False
        if repr(call.arguments) == repr({name: literal_value(value) for name, value in step.arguments.items()}):
            return True  # the usual case, without loading the comparison of arguments
        from agrotools.scoring.steps import agrees

        return agrees(self._sample, call, step)


def _failed(message: str, hint: str) -> ToolOutcome:
    return ToolOutcome(Observation(error=ErrorInfo(kind="backend_unavailable", message=message, hint=hint)), 0.0)
