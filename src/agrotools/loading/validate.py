"""``agrotools benchmarks check``: all faults of a benchmark folder in one pass."""

import tomllib
import warnings
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import JsonValue, ValidationError

from agrotools.core import BenchmarkError, FrozenModel, Sample, SampleFile
from agrotools.core.errors import NoFileError
from agrotools.core.files import read_text, sha256_of_file
from agrotools.core.taxonomy import PlotSpec
from agrotools.core.texts import command_line, count_text, first_names, spell_location
from agrotools.formats.benchmark import (
    CROISSANT_FILE,
    HEADER_FILE,
    SAMPLES_FILE,
    Benchmark,
    BenchmarkHeader,
    resolve_file,
    sample_lines,
)
from agrotools.loading.leaks import check_leaks, has_tool_words
from agrotools.loading.sample_checks import (
    Remark,
    SampleUnderCheck,
    check_answer,
    check_reference,
    tool_or_none,
)
from agrotools.text.answer_form import form_lines

_IMAGE_SUFFIXES = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp"}


class BenchmarkFault(FrozenModel):
    """Fault of a benchmark folder. ``file`` is relative to the folder; the place is in ``line``, ``sample`` and
    ``field``."""

    code: str
    message: str
    hint: str
    file: str
    line: int | None = None
    sample: str | None = None
    field: str | None = None

    @property
    def where(self) -> str:
        """Place of the fault, e.g. ``samples.jsonl:12, sample weeds-03, answer[0].from``."""
        at = f"{self.file}:{self.line}" if self.line else self.file
        return ", ".join(
            part for part in (at, self.sample and f"sample {self.sample}", self.field) if part
        )


def _in_samples(
    code: str, message: str, hint: str, line: int | None = None, **fields: str | None
) -> BenchmarkFault:
    return BenchmarkFault(
        code=code, message=message, hint=hint, file=SAMPLES_FILE, line=line, **fields
    )


def validate_folder(path: str | Path) -> list[BenchmarkFault]:
    """Return all faults of the benchmark in folder ``path``; an empty list means that it is valid.

    Validation continues after a fault: a broken line hides only itself, a broken header only the checks that need it.

    Raises:
        BenchmarkError: ``path`` is not a folder.
    """
    root = Path(path).expanduser().resolve()
    if not root.is_dir():
        raise BenchmarkError(f"{path} is not a folder", hint="give the folder with benchmark.toml")
    files = _Files(root)
    header, faults = _checked_header(root)
    samples = [*_checked_lines(root, faults)]
    faults += _sample_faults(samples, files, root, header)
    faults += files.check_croissant()
    return sorted(faults, key=lambda fault: (fault.file != HEADER_FILE, fault.line or 0))


def check_samples(samples: Sequence[Sample], root: Path) -> list[BenchmarkFault]:
    """Return the faults of samples whose files are in ``root``, before or without a benchmark folder."""
    place = root.resolve()
    return [*_sample_faults([*enumerate(samples, start=1)], _Files(place), place, None)]


def _sample_faults(
    samples: Sequence[tuple[int, Sample]],
    files: "_Files",
    root: Path,
    header: BenchmarkHeader | None,
) -> Iterator[BenchmarkFault]:
    """Yield the faults of samples with their line numbers: of each one, then of those that repeat or pair others."""
    for line, sample in samples:
        at = SampleUnderCheck(sample, root, header)
        for code, field, message, hint in chain(
            files.check(at), check_reference(at), check_answer(at), check_leaks(at)
        ):
            yield _in_samples(code, message, hint, line, sample=sample.id, field=field)
    yield from _repeats(samples)
    yield from _twin_faults(samples)


STOPS_RUN = frozenset(
    "unknown_tool toolset_lacks_tool bad_arguments unresolved_ref ref_forward file_not_in_sample duplicate_slot "
    "bad_value not_a_choice value_is_distractor bad_plot no_keywords from_unresolved from_differs shows_answer".split()
)
"""Faults by which calls cannot be made or answers are scored wrongly; the others do not stop a run."""
_MOST_NAMED = 5


def check_for_run(benchmark: Benchmark, may_lack: Collection[str] = ()) -> None:
    """Check the samples of a benchmark for faults that stop a run. ``may_lack``: codes that do not stop this one.

    Raises:
        NoFileError: there are any; the message names the first ones.
    """
    codes = STOPS_RUN.difference(may_lack)
    named = list[str]()
    n = 0
    for sample in benchmark.samples:
        at = SampleUnderCheck(
            sample, benchmark.root, None
        )  # the toolset of the header stops no call
        for code, field, message, _ in chain(check_reference(at), check_answer(at)):
            if code in codes:
                n += 1
                if n <= _MOST_NAMED:
                    named.append(f"sample {sample.id}, {field}: {code}: {message}")
    if named:
        more = f"\n... and {n - _MOST_NAMED} more" if n > _MOST_NAMED else ""
        hint = f"`{command_line('benchmarks', 'check', benchmark.root)}` lists all faults"
        faults = "\n".join(named)
        raise NoFileError(
            f"benchmark {benchmark.name}: {count_text(n, 'error')}\n{faults}{more}", hint=hint
        )


def format_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema of the format, with one property for each file of a benchmark folder."""
    models = {"BenchmarkHeader": BenchmarkHeader, "PlotSpec": PlotSpec, "Sample": Sample}
    schemas = {
        name: model.model_json_schema(ref_template="#/$defs/{model}")
        for name, model in models.items()
    }
    definitions = {
        name: inner
        for schema in schemas.values()
        for name, inner in schema.pop("$defs", {}).items()
    }
    definitions |= {name: schemas[name] for name in ("Sample", "BenchmarkHeader", "PlotSpec")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "agrotools benchmark folder",
        "description": "benchmark.toml (as an object), samples.jsonl (one object on each line), and the folder files/",
        "type": "object",
        "required": [HEADER_FILE, SAMPLES_FILE],
        "properties": {
            HEADER_FILE: {"$ref": "#/$defs/BenchmarkHeader"},
            SAMPLES_FILE: {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Sample"}},
        },
        "$defs": definitions,
    }


def _checked_header(root: Path) -> tuple[BenchmarkHeader | None, list[BenchmarkFault]]:
    path = root / HEADER_FILE

    def fault(code: str, message: str, hint: str, field: str | None = None) -> BenchmarkFault:
        return BenchmarkFault(code=code, message=message, hint=hint, file=HEADER_FILE, field=field)

    if not path.is_file():
        return None, [
            fault(
                "missing_header",
                f"there is no {HEADER_FILE}",
                "add it: name, version, licence, toolset",
            )
        ]
    try:
        data = orjson.dumps(tomllib.loads(read_text(path)))
    except (
        tomllib.TOMLDecodeError,
        UnicodeDecodeError,
        OSError,
        TypeError,
        RecursionError,
    ) as error:
        return None, [fault("broken_toml", str(error), "correct the TOML")]
    try:
        header = BenchmarkHeader.model_validate_json(data)
    except ValidationError as error:
        return None, list(_schema_faults(error, HEADER_FILE))
    faults: list[BenchmarkFault] = []
    for index, name in enumerate(header.toolset):
        if tool_or_none(name) is None:
            message, hint = f"there is no tool {name!r}", "`agrotools tools list` names the tools"
            faults.append(fault("unknown_tool", message, hint, f"toolset[{index}]"))
    for field, values in (("toolset", header.toolset), ("modes", header.modes)):
        if len(set(values)) < len(values):
            faults.append(
                fault("repeated_value", f"{field} names something twice", "name each once", field)
            )
    return header, faults


def _schema_faults(
    error: ValidationError, file: str, line: int | None = None, sample: str | None = None
) -> Iterator[BenchmarkFault]:
    """Yield one fault for each pydantic error."""
    schema = "`agrotools benchmarks check --schema`"
    known = {
        "extra_forbidden": ("unknown_field", f"remove it, or see {schema} for the known fields"),
        "missing": ("missing_field", f"add it; {schema} says what it holds"),
    }
    details = error.errors(include_url=False, include_input=False)
    places = [detail["loc"] for detail in details]
    for detail in details:
        place = detail["loc"]
        has_faults_inside = any(
            len(other) > len(place) and other[: len(place)] == place for other in places
        )
        if detail["type"] == "too_short" and has_faults_inside:
            continue  # It is too short only without its faulty items, which have faults of their own.
        code, hint = known.get(detail["type"], ("schema", f"{schema} says what it may hold"))
        field = spell_location(place)
        yield BenchmarkFault(
            code=code,
            message=detail["msg"],
            hint=hint,
            file=file,
            line=line,
            sample=sample,
            field=field,
        )


def _checked_lines(root: Path, faults: list[BenchmarkFault]) -> Iterator[tuple[int, Sample]]:
    """Yield the samples of valid lines with their line numbers; faults of the other lines are added to ``faults``."""
    if not (root / SAMPLES_FILE).is_file():
        hint = "add it: one sample as JSON on each line"
        faults.append(_in_samples("missing_samples", f"there is no {SAMPLES_FILE}", hint))
        return
    number = 0
    for number, _, line in sample_lines(root):
        raw: Any = None
        try:
            raw = orjson.loads(line)
            yield number, Sample.model_validate_json(line)
        except orjson.JSONDecodeError as error:
            faults.append(
                _in_samples("broken_json", str(error), "write one JSON object on one line", number)
            )
        except ValidationError as error:
            name = raw.get("id") if isinstance(raw, dict) else None
            faults += _schema_faults(
                error, SAMPLES_FILE, number, name if isinstance(name, str) else None
            )
    if not number:
        faults.append(
            _in_samples(
                "no_samples", "it contains no sample", "add one sample as JSON on each line"
            )
        )


def _repeats(samples: Sequence[tuple[int, Sample]]) -> Iterator[BenchmarkFault]:
    """Yield faults for repeated ids, and for equal questions about the same files."""
    ids: dict[str, int] = {}
    questions: dict[tuple[str, ...], tuple[int, str]] = {}
    for line, sample in samples:
        if sample.id in ids:
            message, hint = f"line {ids[sample.id]} has the same id", "give each sample its own id"
            yield _in_samples("duplicate_id", message, hint, line, sample=sample.id, field="id")
        ids.setdefault(sample.id, line)
        key = (
            " ".join(sample.query.casefold().split()),
            *sorted(file.sha256 or file.path for file in sample.files),
        )
        if key in questions and sample.twin != questions[key][1]:
            message = (
                f"line {questions[key][0]} ({questions[key][1]}) asks the same about the same files"
            )
            hint = "remove one of them"
            yield _in_samples(
                "duplicate_question", message, hint, line, sample=sample.id, field="query"
            )
        questions.setdefault(key, (line, sample.id))


def _twin_faults(samples: Sequence[tuple[int, Sample]]) -> Iterator[BenchmarkFault]:
    """Yield faults of twins: each names the other, one alone is answerable, and their answer forms are equal."""
    by_id = {sample.id: sample for _, sample in samples}
    may_abstain = any(sample.may_abstain for _, sample in samples)
    for line, sample in samples:
        if sample.may_abstain != may_abstain:
            message, hint = (
                "other samples offer to refuse, this one does not",
                "set may_abstain alike in every sample",
            )
            yield _in_samples(
                "offers_no_refusal", message, hint, line, sample=sample.id, field="may_abstain"
            )
        twin = by_id.get(sample.twin or "")
        if sample.answerable and sample.twin is None:
            continue
        fits = twin is not None and twin.twin == sample.id and twin.answerable != sample.answerable
        if not fits or twin is None:
            message, hint = (
                "it has no twin that is answerable and names it",
                "name the other sample in `twin`",
            )
            yield _in_samples("no_twin", message, hint, line, sample=sample.id, field="twin")
        elif form_lines(sample.answer) != form_lines(twin.answer):
            message, hint = (
                f"its answer form differs from that of {twin.id}",
                "ask both for the same",
            )
            yield _in_samples("twin_differs", message, hint, line, sample=sample.id, field="answer")


class _Files:
    """Checks of benchmark files: existence, location, content. Each file is hashed once for all samples."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._hashes: dict[Path, str] = {}

    def _hash(self, real: Path) -> str:
        return self._hashes.get(real) or self._hashes.setdefault(real, sha256_of_file(real))

    def check(self, at: SampleUnderCheck) -> Iterator[Remark]:
        """Check the files of a sample.

        Codes: duplicate_file_name, path_outside, missing_file, not_a_file, altered_file, no_hash, unreadable_file,
        wrong_size, missing_bands, missing_classes.
        """
        names: set[str] = set()
        for index, file in enumerate(at.sample.files):
            where = f"files[{index}]"
            if file.name in names:
                hint = "give each file of a sample its own name"
                yield (
                    "duplicate_file_name",
                    f"{where}.name",
                    f"two files are called {file.name!r}",
                    hint,
                )
            names.add(file.name)
            try:
                real = resolve_file(self._root, file.path)
                actual = self._hash(real)
            except BenchmarkError as error:
                yield (
                    _path_code(error),
                    f"{where}.path",
                    error.message,
                    error.hint or "correct the path",
                )
                continue
            except OSError as error:
                yield (
                    "unreadable_file",
                    f"{where}.path",
                    f"{file.path}: {error.strerror}",
                    "make the file readable",
                )
                continue
            if file.sha256 is None:
                message = f"the hash of {file.path} is not recorded"
                yield "no_hash", f"{where}.sha256", message, f'add "sha256": "{actual}"'
            elif file.sha256 != actual:
                message = f"{file.path} has sha256 {actual[:12]}..., recorded {file.sha256[:12]}..."
                hint = "put the recorded file back, or build the benchmark again"
                yield "altered_file", f"{where}.sha256", message, hint
            if file.kind in ("image", "mask") and real.suffix.lower() in _IMAGE_SUFFIXES:
                yield from _check_image(file, where, real, actual)
            if file.kind == "raster" and not file.bands:
                message = f"{file.name} is a raster without band names"
                yield "missing_bands", f"{where}.bands", message, "list its bands"
            if file.kind == "mask" and not file.classes:
                hint = 'say what its values mean, e.g. {"1": "crop"}'
                yield (
                    "missing_classes",
                    f"{where}.classes",
                    f"{file.name} is a mask without class meanings",
                    hint,
                )

    def check_croissant(self) -> Iterator[BenchmarkFault]:
        """Check the hashes in the Croissant file. Codes: broken_croissant, stale_croissant."""

        def fault(code: str, message: str) -> BenchmarkFault:
            hint = "write it anew: agrotools export DIR --format croissant"
            return BenchmarkFault(code=code, message=message, hint=hint, file=CROISSANT_FILE)

        path = self._root / CROISSANT_FILE
        if not path.is_file():
            return
        try:
            described = orjson.loads(path.read_bytes())
            files = [
                (str(file["contentUrl"]), str(file["sha256"]))
                for file in cast(Any, described)["distribution"]
            ]
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
            yield fault("broken_croissant", f"it lists no files with their hashes: {error}")
            return
        for name, sha256 in files:
            if name.startswith(("http://", "https://")):
                continue
            try:
                if self._hash(resolve_file(self._root, name)) != sha256:
                    yield fault(
                        "stale_croissant",
                        f"{name} is not the file that it describes (sha256 differs)",
                    )
            except (BenchmarkError, OSError) as error:
                yield fault("stale_croissant", f"it lists {name}: {error}")


def _path_code(error: BenchmarkError) -> str:
    if "leads out" in error.message:
        return "path_outside"
    return "missing_file" if "there is no file" in error.message else "not_a_file"


def _check_image(file: SampleFile, where: str, real: Path, sha256: str) -> Iterator[Remark]:
    from PIL import Image

    try:
        width, height = _decoded_size(real, sha256)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Warning) as error:
        yield (
            "unreadable_file",
            f"{where}.path",
            f"{file.path} is no readable image: {error}",
            "replace the file",
        )
        return
    recorded = (file.width_px or width, file.height_px or height)
    if recorded != (width, height):
        message = f"{file.path} has {width} x {height} px, recorded {recorded[0]} x {recorded[1]}"
        yield "wrong_size", f"{where}.width_px", message, "correct width_px and height_px"


@lru_cache(maxsize=4096)
def _decoded_size(path: Path, _sha256: str) -> tuple[int, int]:
    """Decode an image completely and return its width and height. Cached, because many samples share an image."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path) as image:
            image.load()
            return image.size


def folder_remarks(path: str | Path) -> list[str]:
    """Return what is worth a look in a benchmark folder and is no fault. Lines that cannot be read have no remarks."""
    root = Path(path).expanduser().resolve()
    header, _ = _checked_header(root)
    samples = [sample for _, sample in _checked_lines(root, faults=[])]
    return [*_canary_remarks(samples), *_tool_word_remarks(samples, header)]


def _canary_remarks(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield a remark on samples without a canary: a run looks for that of the sample, never for that of the header."""
    without = [sample.id for sample in samples if not sample.canary]
    if without and len(without) == len(samples):
        yield "its samples have no canary: a leak of them into training data cannot be found"
    elif without:
        yield (
            f"{count_text(len(without), 'sample')} of {len(samples)} {'has' if len(without) == 1 else 'have'} no "
            f"canary: a leak into training data cannot be found ({first_names(without, _MOST_NAMED)})"
        )


def _tool_word_remarks(samples: Sequence[Sample], header: BenchmarkHeader | None) -> Iterator[str]:
    """Yield a remark for each tool whose name stands in questions as words of the matter."""
    of_benchmark = header.toolset if header else ()
    ids_by_tool: dict[str, list[str]] = {}
    for sample in samples:
        for tool in {*sample.toolset, *of_benchmark}:
            if has_tool_words(sample.query, tool):
                ids_by_tool.setdefault(tool, []).append(sample.id)
    for tool, ids in sorted(ids_by_tool.items()):
        yield (
            f"the words of the name of the tool {tool} are in {count_text(len(ids), 'question')}: a question may use "
            f"them, but a model then finds the tool more easily ({first_names(ids, _MOST_NAMED)})"
        )
