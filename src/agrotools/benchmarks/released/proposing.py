"""Proposed field map of released files: the fields, tools and forms of answers found, as lines for the user to edit."""

import re
from collections import Counter
from pathlib import Path
from typing import Any, cast

import tomli_w

from agrotools.benchmarks.loading import Loading
from agrotools.benchmarks.released.load import find_entries, load_released, map_for
from agrotools.benchmarks.values import value_at
from agrotools.build.export.gta_entries import MAP_FILE, entries_in
from agrotools.build.export.gta_in import Source
from agrotools.core import BenchmarkError, UsageError
from agrotools.core.base import Progress
from agrotools.core.files import write_whole
from agrotools.tools import get_tool
from agrotools.tools.declared import of_name

_KEYS = {"sample": "id query tools family task_type source", "files": "at", "calls": "at final", "answer": "at options"}
_HEAD = 'Proposed field map; other keys are as in the package. [tools]: what runs the calls; "" plays back results.'


def propose_map(data_root: Path | None, progress: Progress) -> list[str]:
    """Write a proposed map beside the released files; return lines on what was found.

    Raises:
        UsageError: there is such a file already.
        BenchmarkError: the files are missing.
    """
    root = find_entries(data_root)
    target = root / MAP_FILE
    if target.exists():
        raise UsageError(f"{target} exists already", hint="edit it, or remove it")
    _, fields = map_for(root)
    entries = entries_in(root, fields)
    document: dict[str, dict[str, Any]] = {"tools": {}, "arguments": {}}
    found = [f"{len(entries)} entries in {root}"]
    for table, key in ((table, key) for table, keys in _KEYS.items() for key in keys.split()):
        paths = [path.strip() for path in re.split(r"[|+]", getattr(fields, table)[key])]
        paths = [path for path in paths if any(value_at(each, path) not in (None, "", []) for each in entries.values())]
        found.append(f"{table}.{key}: {', '.join(paths) or 'not found'}")
        if paths:
            document.setdefault(table, {})[key] = (" + " if table == "files" else "|").join(paths)
    for name, tool in Source(root, fields, entries).declared.items():
        ours = of_name(name, fields.proposals) or of_name(tool.description, fields.proposals) or ""
        document["tools"][name] = ours
        found.append(f"tool {name}({', '.join(tool.agreement)}): {ours or 'recorded results'}")
        if ours and ours != "plot":
            known, given = get_tool(ours).spec.agreement, fields.arguments.get(ours, {})
            others = {each: given.get(each, "") for each in tool.agreement if each not in known}
            document["arguments"].setdefault(ours, {}).update(others)
            found += [f"  {each}: which argument of {ours}({', '.join(known)})?" for each in others if not others[each]]
    comments = "".join(f"# {line}\n" for line in [_HEAD, *found])
    write_whole(target, (comments + tomli_w.dumps(document)).encode())
    found.append(f"map written: {target}")
    try:
        benchmark = load_released(Loading(data_root, {"map": str(target)}, progress))
    except BenchmarkError as error:
        return [*found, error.message, f"  {error.hint}"]
    forms = Counter(" and ".join(dict.fromkeys(slot.type for slot in sample.answer)) for sample in benchmark.samples)
    notes = cast(list[str], benchmark.header.metadata["notes"])
    return [*found, *(f"answer {form}: {count}" for form, count in forms.most_common()), *notes]
