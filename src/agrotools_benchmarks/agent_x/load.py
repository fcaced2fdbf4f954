"""Loader of Agent-X (Ashraf et al. 2025, arXiv 2505.24876): 828 questions on images and videos, with 14 tools.

Reads the published files. docs/gta-thinkgeo-agent-x.md describes how their entries become samples.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import Field, JsonValue

from agrotools.core import (
    Arguments,
    BenchmarkError,
    KeywordsSlot,
    Observation,
    ReferenceStep,
    ReferenceTextsSlot,
    ReferenceTrajectory,
    Sample,
    SampleFile,
)
from agrotools.core.files import cache_dir, sha256_of_file
from agrotools.core.progress import Progress, no_progress
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools_benchmarks._dialogs.entries import Gold, offered_tools, sample_of, text_of
from agrotools_benchmarks._dialogs.loading import (
    VIDEO_SUFFIXES,
    FileTable,
    Findings,
    PublishedBenchmark,
    PublishedSettings,
    ReadSet,
    actual_content,
    entries_of,
    error_text,
    plain_path,
    quote,
    safe_name,
    samples_of,
)
from agrotools_benchmarks._dialogs.plugin_parts import ImageCallsSlot
from agrotools_benchmarks.agent_x.plugin import FACTS

Choice = Literal["even", "first"]
PLACE = "video-frames"
"""First part of frame paths, and the name of the frame folder in the user's cache."""
_QUALITY = 95
_MOST_READ = 200_000
_FORM = "1"
"""Version of the extraction; change it when frames are selected or written differently."""


def frames_folder() -> Path:
    """Return the folder of the extracted frames."""
    return cache_dir(PLACE)


def frames_of(video: Path, count: int, choice: Choice) -> list[str]:
    """Extract at most ``count`` frames of a video and return their paths below :func:`frames_folder`.

    ``even``: frames spread over the video, including the first and the last (the middle one if ``count`` is 1).
    ``first``: the first frames. A shorter video gives all of its frames.

    Raises:
        BenchmarkError: the video cannot be decoded, or the cache cannot be written.
    """
    try:
        name = f"{sha256_of_file(video)[:32]}-{choice}-{count}-{_FORM}"
    except OSError as error:
        raise BenchmarkError(f"{video.name} cannot be read: {error.strerror or error}") from error
    target = frames_folder() / name
    if not target.is_dir():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(prefix=".making-", dir=target.parent) as temporary:
                made = Path(temporary) / name
                made.mkdir()
                _write_frames(video, made, count, choice)
                made.replace(target)
        except OSError as error:
            # Another process may have written the same frames in the meantime.
            if not target.is_dir():
                raise BenchmarkError(
                    f"frames of {video.name} cannot be written to {target.parent}: {error.strerror or error}",
                    hint="set AGROTOOLS_CACHE to a folder that can be written",
                ) from error
    return [f"{name}/{path.name}" for path in sorted(target.glob("frame_*_of_*.jpg"))]


def _write_frames(video: Path, folder: Path, count: int, choice: Choice) -> None:
    import cv2

    capture = cv2.VideoCapture(str(video))
    good_frames: list[Path] = []
    try:
        if not capture.isOpened():
            raise BenchmarkError(
                f"{video.name} is no video that can be read{actual_content(video)}"
            )
        places = range(count)
        if choice == "even":
            # Frames are counted by reading them, because the number in a file's header is often wrong.
            length = next(
                (number for number in range(_MOST_READ) if not capture.grab()), _MOST_READ
            )
            places = _places(length, count)
            capture = cv2.VideoCapture(str(video))
        for place in range(max(places, default=0) + 1):
            if not capture.grab():
                break
            if place in places:
                good, frame = capture.retrieve()
                path = folder / f"frame_{len(good_frames) + 1:02d}.jpg"
                if good and cv2.imwrite(str(path), frame, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY]):
                    good_frames.append(path)
    except cv2.error as error:
        raise BenchmarkError(f"{video.name} cannot be decoded") from error
    finally:
        capture.release()
    if not good_frames:
        raise BenchmarkError(f"{video.name} contains no frame that can be read")
    for path in good_frames:
        path.rename(path.with_stem(f"{path.stem}_of_{len(good_frames):02d}"))


def _places(length: int, count: int) -> Sequence[int]:
    if length <= count:
        return range(length)
    return (
        [round(place * (length - 1) / (count - 1)) for place in range(count)]
        if count > 1
        else [length // 2]
    )


class AgentXSettings(PublishedSettings):
    """Options of ``agrotools eval agent-x``."""

    frames: Annotated[int, Field(ge=1, le=64)] = 8
    """Number of frames shown of each video."""
    frame_choice: Choice = "even"
    """Choice of frames: spread over the video, or its first ones as in the published run of GPT-4o."""


_DEFAULTS = AgentXSettings()
FOLDERS = ("files", "", "images", "videos")
"""Folders of the files below the root, the published one first."""
_PREFIX = re.compile(r"^([A-Za-z]{2,12})[_-]?\d")
_GENERIC = frozenset(
    {
        "image",
        "images",
        "img",
        "video",
        "vid",
        "frame",
        "file",
        "pic",
        "photo",
        "screenshot",
        "test",
    }
)
_NO_TOOL = frozenset({"", "none", "null", "n/a", "no tool"})
_MOST_WORDS = 4
"""Maximum number of words in an objective answer that is matched literally; a longer one is compared as text."""


class _Files(NamedTuple):
    samples: list[SampleFile]
    names: dict[str, str]
    """Name in the sample for each name by which a step may refer to a file; for a video, the name of its first
    frame."""
    videos: list[str]


def _read_entry(
    table: FileTable, settings: AgentXSettings, position: int, entry: Any, findings: Findings
) -> Sample | None:
    """Return the sample of an entry. If the entry cannot be used, return None and add all reasons to ``findings``."""
    content = _entry_content(entry)
    if content is None:
        findings.fault("it is no object, nor a list of one")
        return None
    files = _files(content.get("file_path"), table, settings, findings)
    query = text_of(content.get("query")).strip()
    if not query:
        findings.fault("it has no query")
    raw = _raw_steps(content.get("reasoning_steps"), findings)
    steps = _steps(raw, files, findings)
    # The tools that an entry describes are those of its solution: the published scripts offer all and show these to the
    # judge alone.
    called = [step.tool for step in steps]
    toolset = offered_tools([*FACTS["tools"]], called, findings)
    query_type = str(content.get("query_type") or "").strip().casefold()
    answer = _final_answer(content.get("final_answer"))
    try:
        gold = _gold(query_type, answer, called)
    except BenchmarkError as error:
        findings.fault(error.message)
        return None
    if findings.broken:
        return None
    groups = {
        "environment": _environment(content.get("file_path")),
        "query_type": query_type,
        "answer": gold.kind,
        "input": "video" if files.videos else "images" if len(files.samples) > 1 else "image",
        "steps": str(len(steps)),
    }
    metadata: dict[str, JsonValue] = {
        "entry": findings.key,
        "position": position,
        "file_path": text_of(content.get("file_path")),
        "query_type": query_type,
        "reasoning_steps": [*raw],
        "final_answer": {**answer},
        "tools": [*(_described_tools(content.get("tool_metadata")) or dict.fromkeys(called))],
    }
    if files.videos:
        metadata["videos"] = [*files.videos]
    return sample_of(
        "agent-x",
        gold,
        findings,
        query=query,
        files=tuple(files.samples),
        family="vision",
        source="Agent-X",
        toolset=tuple(toolset),
        reference=ReferenceTrajectory(steps=tuple(steps)),
        no_tool_eligible=gold.kind != "image",
        groups={name: value for name, value in groups.items() if value},
        metadata=metadata,
    )


def _entry_content(entry: Any) -> dict[str, Any] | None:
    """Return the object of an entry, which is published as a list of one object."""
    while is_list(entry) and len(entry) == 1:
        entry = entry[0]
    return entry if is_object(entry) else None


def _files(value: Any, table: FileTable, settings: AgentXSettings, findings: Findings) -> _Files:
    """Read the files of an entry, which are given as a list or as one text separated by commas."""
    paths: list[Any] = value if is_list(value) else str(value or "").split(",")
    files: list[SampleFile] = []
    names: dict[str, str] = {}
    videos: list[str] = []
    for path in filter(None, (str(each).strip() for each in paths)):
        used_names = [file.name for file in files]
        try:
            relative = _file_path(path, table)
            if PurePosixPath(relative).suffix.lower() in VIDEO_SUFFIXES:
                frame_files = _frame_files(relative, table, settings, used_names)
                videos.append(relative)
            else:
                frame_files = [table.image(relative, safe_name(path, used_names))]
        except BenchmarkError as error:
            findings.fault(error_text(error))
            continue
        files += frame_files
        names |= dict.fromkeys(
            (path, plain_path(path), PurePosixPath(plain_path(path)).name), frame_files[0].name
        )
    if not files and not findings.broken:
        findings.note("it has no file")
    return _Files(files, names, videos)


def _file_path(path: str, table: FileTable) -> str:
    """Find a file by its path, or by its name alone, because some entries hold paths of their author's machine."""
    try:
        return table.find(path, FOLDERS)
    except BenchmarkError:
        return table.find(PurePosixPath(plain_path(path)).name, FOLDERS)


def _frame_files(
    relative: str, table: FileTable, settings: AgentXSettings, used_names: Sequence[str]
) -> list[SampleFile]:
    frame_files: list[SampleFile] = []
    store, stem = FileTable(frames_folder().resolve()), PurePosixPath(relative).stem
    paths = frames_of(table.root / relative, settings.frames, settings.frame_choice)
    for number, path in enumerate(paths, start=1):
        name = safe_name(
            f"{stem}_frame_{number}.jpg", [*used_names, *(file.name for file in frame_files)]
        )
        moved = {"path": f"{PLACE}/{path}", "note": f"frame {number} of {len(paths)} of a video"}
        frame_files.append(store.image(path, name).model_copy(update=moved))
    return frame_files


def _raw_steps(value: Any, findings: Findings) -> list[dict[str, JsonValue]]:
    """Return the reasoning steps as written; some are wrapped in an additional list."""
    while is_list(value) and len(value) == 1 and is_list(value[0]):
        value = value[0]
    if not is_list(value):
        findings.fault(f"its reasoning_steps are no list: {quote(value)}")
        return []
    steps: list[dict[str, JsonValue]] = [step for step in value if is_object(step)]
    if len(steps) < len(value):
        findings.note("reasoning steps that are no objects are left out")
    return steps


def _steps(
    raw: Sequence[dict[str, JsonValue]], files: _Files, findings: Findings
) -> list[ReferenceStep]:
    """Return the steps that call a tool."""
    steps: list[ReferenceStep] = []
    for step in raw:
        tool = step.get("tool", step.get("tool_used"))
        if not isinstance(tool, str | None):
            findings.fault(f"a step names a tool that is no text: {quote(tool)}")
            continue
        tool = (tool or "").strip()
        if tool.casefold() in _NO_TOOL:
            findings.note("steps without a tool are no calls")
            continue
        step_input = step.get("input", step.get("tool_input"))
        arguments = arguments_of(tool, step_input, files.names)
        if arguments is None:
            findings.note("the input of a step cannot be told apart into arguments")
            arguments = cast("Arguments", {} if step_input is None else {"input": step_input})
        output = step.get("output", step.get("tool_output"))
        if output is None:
            findings.note("a call has no recorded observation")
        thought = text if isinstance(text := step.get("thought") or step.get("task"), str) else ""
        observation = _observation(tool, output)
        steps.append(
            ReferenceStep(tool=tool, arguments=arguments, observation=observation, thought=thought)
        )
    if not steps:
        findings.note("no reasoning step calls a tool")
    return steps


def _observation(tool: str, output: JsonValue) -> Observation:
    """Return the recorded output of a tool; the result is empty if there is none."""
    if output is None:
        return Observation(result={})
    text = text_of(output)
    is_file = bool(re.fullmatch(r"[^\s]+\.(?:png|jpe?g|webp|bmp)", text, re.IGNORECASE))
    return Observation(
        result={"image" if tool in FACTS["image_tools"] and is_file else "text": text}
    )


def _described_tools(value: Any) -> list[str]:
    if is_object(value):
        return [*value]
    return [
        item["name"]
        for item in (value if is_list(value) else ())
        if is_object(item) and is_text(item.get("name"))
    ]


def _final_answer(value: Any) -> dict[str, JsonValue]:
    content = _entry_content(value)
    if content is None:
        return {} if value is None else {"value": text_of(value), "justification": ""}
    return {
        "value": text_of(content.get("value")),
        "justification": text_of(content.get("justification")),
    }


def _gold(query_type: str, answer: Mapping[str, JsonValue], called: Sequence[str]) -> Gold:
    """Return the kind of answer to a query, and its slot.

    A query is generative if its type says so, or if the last call creates an image and the type is neither factual nor
    interpretive; it is scored by the calls that create images. A short answer to an objective or factual query is
    matched literally; all other answers are compared as texts. The published scores use a judge instead.
    """
    makers = FACTS["image_tools"]
    used = tuple(dict.fromkeys(tool for tool in called if tool in makers))
    ends_in_image = (
        bool(called)
        and called[-1] in makers
        and not query_type.startswith(("factual", "interpret"))
    )
    if used and (query_type.startswith("generat") or ends_in_image):
        return Gold("image", ImageCallsSlot(name="image", label="the image", tools=used))
    value = str(answer.get("value") or "").strip()
    if not value:
        raise BenchmarkError("it has no final answer")
    if query_type.startswith(("objective", "factual")) and len(value.split()) <= _MOST_WORDS:
        return Gold(
            "objective",
            KeywordsSlot(name="answer", label="the answer", whitelist=((value.rstrip("."),),)),
        )
    return Gold(
        "subjective", ReferenceTextsSlot(name="answer", label="the answer", values=(value,))
    )


def _environment(value: Any) -> str:
    """Return the leading letters of the first file name, which identify a collection: ``VCA_1.jpg`` gives ``VCA``."""
    first = str(value[0] if is_list(value) and value else value or "").split(",")[0]
    match = _PREFIX.match(PurePosixPath(first.strip().replace("\\", "/")).name)
    return "" if match is None or match[1].casefold() in _GENERIC else match[1].upper()


# --- inputs of reference steps, which are published as one text: ``VCA_1.jpg, cup`` -----------------------------------

PARAMETERS: Mapping[str, tuple[str, ...]] = FACTS["parameters"]
_BOX = re.compile(r"[(\[]\s*-?\d+(?:\.\d+)?(?:\s*,\s*-?\d+(?:\.\d+)?){3}\s*[)\]]")
_NAMED = re.compile(r"^\s*([a-z_0-9]+)\s*[=:]\s*", re.IGNORECASE)
_QUOTES = "\"'` "


def arguments_of(tool: str, raw_arguments: Any, files: Mapping[str, str]) -> Arguments | None:
    """Return the arguments in the input of a step; None if they cannot be parsed.

    An input is an object (values by name), a list (values in order) or a text. In a text, the first part that names a
    file is the image, four numbers in brackets are the box, and the rest is the first text parameter. ``files``: names
    in the sample for all names by which an input may refer to a file.
    """
    names = PARAMETERS.get(tool, ())
    if is_object(raw_arguments):
        return {str(name): _replace_path(value, files) for name, value in raw_arguments.items()}
    if not names or (is_list(raw_arguments) and len(raw_arguments) > len(names)):
        return None
    if is_list(raw_arguments):
        return {
            name: _replace_path(value, files)
            for name, value in zip(names, raw_arguments, strict=False)
        }
    first_file = next(iter(files.values()), None)
    if raw_arguments is None or raw_arguments == "":
        return {"image": first_file} if names[0] == "image" and files else None
    if not isinstance(raw_arguments, str):
        return {names[0]: raw_arguments} if isinstance(raw_arguments, int | float) else None
    return _read_text(names, raw_arguments, files)


def _read_text(names: Sequence[str], text: str, files: Mapping[str, str]) -> Arguments | None:
    arguments: Arguments = {}
    rest = text.strip()
    if names[0] == "image":
        image, rest = _without_file(rest, files)
        if not (image := image or next(iter(files.values()), None)):
            return None
        arguments["image"] = image
    if "bbox" in names and (box := _BOX.search(rest)):
        arguments["bbox"] = box[0]
        rest = rest[: box.start()] + rest[box.end() :]
    rest = _without_label(rest.strip(" ,;"))
    text_name = next((name for name in names if name not in ("image", "bbox")), None)
    return {**arguments, text_name: rest} if rest and text_name else arguments


def _without_file(text: str, files: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the name of the file that a text mentions, and the text without it."""
    for published in sorted(files, key=len, reverse=True):
        place = text.find(published)
        if place >= 0:
            before, after = text[:place], text[place + len(published) :]
            before = _NAMED.sub("", before).strip(_QUOTES + ",;")
            after = after.lstrip(_QUOTES).lstrip(",;")
            return files[published], f"{before} {after}".strip()
    return None, text


def _without_label(text: str) -> str:
    """Remove a parameter label and quotes: ``text: cup`` becomes ``cup``."""
    match = _NAMED.match(text)
    if match and match[1].casefold() in {name for names in PARAMETERS.values() for name in names}:
        text = text[match.end() :]
    return text.strip(_QUOTES)


def _replace_path(value: JsonValue, files: Mapping[str, str]) -> JsonValue:
    return files.get(value, value) if isinstance(value, str) else value


def read_agent_x(
    path: Path, settings: AgentXSettings = _DEFAULTS, progress: Progress = no_progress
) -> ReadSet:
    """Read all entries of a ``data.json`` and its files in ``files/``. Video frames are written to the user's cache.

    Raises:
        BenchmarkError: the file cannot be read, or holds no entries of Agent-X.
    """
    entries = entries_of(path)
    if any(isinstance(entry, dict) and "dialogs" in entry for entry in entries.values()):
        fault = f"{path} holds dialogs: it is a file of GTA or ThinkGeo"
        raise BenchmarkError(fault, hint="name its folder: --data-root DIR")
    findings = Findings()
    read = partial(_read_entry, FileTable(path.parent), settings)
    samples = samples_of(entries, read, findings, progress)
    return ReadSet(path.parent, (path,), len(entries), samples, findings, {PLACE: frames_folder()})


AGENT_X = PublishedBenchmark(FACTS, read_agent_x, AgentXSettings)
