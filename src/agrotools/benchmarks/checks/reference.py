"""The reference trajectory: real tools, arguments that they take, references that lead to the recorded values."""

import math
from collections.abc import Mapping

from pydantic import JsonValue

from agrotools.benchmarks.checks.fault import Checked, plain_results, reason
from agrotools.core import ReferenceStep, ToolError, UnresolvedRef
from agrotools.core.record import REF_PATTERN, iter_refs, literal_value, resolve_ref


def check_reference(at: Checked) -> None:
    """Codes: no_reference, unknown_tool, toolset_lacks_tool, bad_arguments, file_not_in_sample, unresolved_ref,
    ref_forward, ref_differs, group_not_independent, group_mixed_tools.
    """
    _check_toolset(at)
    if at.sample.reference is None or not at.sample.reference.steps:
        hint = "add the gold calls; without them no process metric and no ceiling can be had"
        at.fault("no_reference", "reference", "the sample has no reference trajectory", hint)
        return
    steps = at.sample.reference.steps
    recorded = plain_results(step.observation.result if step.observation else None for step in steps)
    for index, step in enumerate(steps):
        where = f"reference.steps[{index}]"
        if step.tool not in at.sample.toolset and at.tools.get(step.tool) is not None:
            hint = f"add {step.tool!r} to the sample's toolset"
            at.fault("toolset_lacks_tool", f"{where}.tool", f"{step.tool} is not in the sample's toolset", hint)
        _check_refs(at, index, step, recorded)
        _check_arguments(at, where, step)
    _check_groups(at)


def _check_toolset(at: Checked) -> None:
    steps = at.sample.reference.steps if at.sample.reference else ()
    named_tools = [(f"toolset[{index}]", name) for index, name in enumerate(at.sample.toolset)]
    named_tools += [(f"reference.steps[{index}].tool", step.tool) for index, step in enumerate(steps)]
    for where, name in named_tools:
        if at.tools.get(name) is None:
            at.fault("unknown_tool", where, f"there is no tool {name!r}", "`agrotools tools list` names the tools")
    if at.header is not None:
        for name in at.sample.toolset:
            if name not in at.header.toolset and at.tools.get(name) is not None:
                hint = "add it to `toolset` in benchmark.toml"
                at.fault("toolset_lacks_tool", "toolset", f"{name} is not in the benchmark's toolset", hint)


def _check_refs(at: Checked, index: int, step: ReferenceStep, recorded: list[dict[str, JsonValue] | None]) -> None:
    for inside, ref, literal in iter_refs(dict(step.arguments)):
        where = f"reference.steps[{index}].arguments.{inside}"
        match = REF_PATTERN.fullmatch(ref.strip())
        if match and int(match["step"]) >= index:
            hint = "a step may only use what earlier steps returned"
            at.fault("ref_forward", where, f"{ref} is not an earlier step than {index}", hint)
            continue
        target = at.sample.reference.steps[int(match["step"])] if match and at.sample.reference else None
        if target is not None and target.observation is not None and target.observation.result is None:
            continue  # The real tool failed at that step: nothing to compare the literal with.
        try:
            value = resolve_ref(ref, recorded)
        except UnresolvedRef as error:
            if not _in_truth(at, ref):
                at.fault("unresolved_ref", where, str(error), "refer to a field that the recorded observation has")
            continue  # The real tool was wrong, and what it returned does not have what the truth has.
        if not _same(value, literal):
            at.fault("ref_differs", where, f"{ref} is {value!r} in the recorded observation, {literal!r} beside it",
                     "write the recorded value beside the reference")  # fmt: skip


def _in_truth(at: Checked, ref: str) -> bool:
    steps = at.sample.reference.steps if at.sample.reference else ()
    try:
        return resolve_ref(ref, plain_results(step.truth for step in steps)) is not None
    except UnresolvedRef:
        return False


def _check_arguments(at: Checked, where: str, step: ReferenceStep) -> None:
    tool = at.tools.get(step.tool)
    if tool is None:
        return
    if not any(literal is None for _, _, literal in iter_refs(dict(step.arguments))):
        try:
            tool.validated({name: literal_value(value) for name, value in step.arguments.items()})
        except ToolError as error:
            at.fault("bad_arguments", f"{where}.arguments", *reason(error))
    names = {file.name for file in at.sample.files}
    for argument, kind in tool.spec.agreement.items():
        name = literal_value(step.arguments.get(argument))
        is_artifact = _is_artifact(at, name)
        if kind == "file" and isinstance(name, str) and name not in names and not is_artifact:
            at.fault("file_not_in_sample", f"{where}.arguments.{argument}", f"the sample has no file {name!r}",
                     f"its files: {', '.join(sorted(names)) or 'none'}")  # fmt: skip


def _is_artifact(at: Checked, name: JsonValue) -> bool:
    steps = at.sample.reference.steps if at.sample.reference else ()
    return any(artifact.name == name for step in steps if step.observation for artifact in step.observation.artifacts)


def _check_groups(at: Checked) -> None:
    assert at.sample.reference is not None
    steps = at.sample.reference.steps
    for index, step in enumerate(steps):
        if step.group is None:
            continue
        for _, ref, _ in iter_refs(dict(step.arguments)):
            match = REF_PATTERN.fullmatch(ref.strip())
            other = steps[int(match["step"])] if match and int(match["step"]) < index else None
            if other is not None and other.group == step.group:
                at.fault("group_not_independent", f"reference.steps[{index}]", f"{ref} is in the same group",
                         "steps of a group must not use each other's results")  # fmt: skip
        first = next(other for other in steps if other.group == step.group)
        if first.tool != step.tool:
            at.fault("group_mixed_tools", f"reference.steps[{index}].group",
                     f"group {step.group} holds {first.tool} and {step.tool}", "a group repeats one tool")  # fmt: skip


def _same(value: JsonValue, literal: JsonValue) -> bool:
    if isinstance(value, bool) or isinstance(literal, bool):
        return value is literal
    if isinstance(value, (int, float)) and isinstance(literal, (int, float)):
        return math.isclose(value, literal, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(value, list) and isinstance(literal, list):
        return len(value) == len(literal) and all(map(_same, value, literal))
    if isinstance(value, Mapping) and isinstance(literal, Mapping):
        return value.keys() == literal.keys() and all(_same(value[key], literal[key]) for key in value)
    return value == literal
