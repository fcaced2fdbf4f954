"""``agrotools explain`` and ``attribute``: one sample of a run, from question to score, and the lost points of all."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from agrotools.cli.output import command_line, count_text, print_json, terminal_progress
from agrotools.cli.reading import new_readings

if TYPE_CHECKING:
    from agrotools.core import Record, Score, UsageError
    from agrotools.runner.prompts import StoredRequest
    from agrotools.runner.records import Key, RecordIndex
    from agrotools.scoring.judging.judgements import JudgedRows
    from agrotools.scoring.lost_points import Shares

_LISTED = 20
"""Records that a list in text shows."""


class _Prompts(NamedTuple):
    """Requests for a sample (None: not stored); ``sizes``: characters and tokens of requests that were not sent."""

    key: "Key"
    requests: "Sequence[StoredRequest] | None"
    sizes: "Sequence[tuple[int, int]]" = ()


def explain(
    run: Path,
    sample: str | None = None,
    mode: str | None = None,
    epoch: int = 0,
    prompt: bool = False,
    protocol: str | None = None,
    tools: str | None = None,
    data_root: Path | None = None,
    details: bool = False,
    as_json: bool = False,
) -> None:
    """Show question, steps and answer of a sample, and for each score the matched text and the reason."""
    from agrotools.runner.records import record_index
    from agrotools.runner.rescore import judged_rows
    from agrotools.runner.store import has_manifest, read_manifest

    of_benchmark = {"protocol": protocol, "tools": tools, "data_root": data_root}
    if not has_manifest(run):
        if not prompt:
            raise _no_run_folder(run)
        _preview(str(run), sample or "", {"mode": mode, **of_benchmark}, as_json=as_json)
        return
    _refuse_options(of_benchmark)
    read_manifest(run)
    index = record_index(run)
    for note in index.notes:
        typer.echo(f"warning: {note}", err=True)
    if not len(index):
        raise index.without_samples
    if sample:
        chosen = _chosen(run, index, sample, mode, epoch)
    else:
        chosen = (record for record in index if mode in (None, record.mode))
    if prompt and sample is not None:
        _print_prompts(run, [*chosen], as_json=as_json)
        return
    judges = judged_rows(run)
    scored = _score_records(run, index, chosen, judges)
    if sample is None:
        _list_records(run, scored, as_json=as_json)
    elif as_json:
        print_json([_record_json(run, each) for each in scored])
    else:
        for each in scored:
            _print_record(run, index, each, judges, details=details)


class _ScoredRecord(NamedTuple):
    """A record with its score rows and the points that it lost by cause.

    ``is_estimate``: the split would need results of calls that nobody has made.
    """

    record: "Record"
    scores: "list[Score]"
    shares: "Shares"
    is_estimate: bool = False


def _no_run_folder(run: Path) -> "UsageError":
    """Return the error for a path that is no run; a benchmark can be described, or its prompts shown."""
    from agrotools.core import UsageError
    from agrotools.core.files import MANIFEST_FILE
    from agrotools.formats.benchmark import HEADER_FILE

    hint = "give the folder that agrotools eval printed; a benchmark needs --prompt"
    if (run / HEADER_FILE).is_file():
        listing = command_line("benchmarks", "describe", run, "--json")
        hint += f", and {listing} lists the photo and the question of each sample"
    return UsageError(f"{run} is not a run folder (no {MANIFEST_FILE})", hint=hint)


def _refuse_options(of_benchmark: dict[str, Any]) -> None:
    """Raise a UsageError if an option is given that only the prompts of a benchmark have."""
    from agrotools.core import UsageError

    for name, value in of_benchmark.items():
        if value is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} is for --prompt of a benchmark",
                hint="omit it: a run has its own prompts",
            )


def _score_records(
    run: Path, index: "RecordIndex", records: "Iterable[Record]", judges: "JudgedRows"
) -> "Iterator[_ScoredRecord]":
    """Yield records with their scores, one by one: a run may be larger than the memory."""
    from agrotools.runner.repeated_calls import read_repeated_calls
    from agrotools.runner.rescore import rows_of
    from agrotools.scoring.lost_points import CountedResults, lost_shares

    repeated = read_repeated_calls(run)
    for record in records:
        scores = judges.joined(record, rows_of(record, index))
        if record.invalid is not None or record.actions is not None:
            yield _ScoredRecord(record, scores, {})
            continue
        find_result = CountedResults(repeated.of(record))
        shares = lost_shares(record, scores, find_result)
        yield _ScoredRecord(record, scores, shares, is_estimate=find_result.n_unknown > 0)


def _record_json(run: Path, scored: _ScoredRecord) -> dict[str, Any]:
    """Return a record, its scores, and what the page of the run shows of it."""
    from agrotools.report.html.data import whole_data

    return {
        "record": scored.record.model_dump(mode="json", by_alias=True),
        "scores": [score.model_dump(mode="json") for score in scored.scores],
        "shown": whole_data(run, scored.record, scored.scores, scored.shares),
    }


def _print_record(
    run: Path, index: "RecordIndex", scored: _ScoredRecord, judges: "JudgedRows", *, details: bool
) -> None:
    """Print question, steps, answer and scores of a record, and how its twin was answered."""
    from agrotools.report.explain import explain as explanation
    from agrotools.report.terminal import print_parts

    record, scores = scored.record, scored.scores
    parts = explanation(record, scores, judges.of(record), details=details, shares=scored.shares)
    print_parts(parts)
    if scored.is_estimate:
        _print_estimate_note(run)
    _print_twin(run, index, record, scores)


def _print_estimate_note(run: Path) -> None:
    command = command_line("attribute", run)
    typer.echo(f"the lost points are an estimate until {command} makes the calls that it needs")


def _chosen(
    run: Path, index: "RecordIndex", sample: str, mode: str | None, epoch: int
) -> "list[Record]":
    """Return the records of a sample in a mode, or in all."""
    from agrotools.core import UsageError

    of_sample = [record for record in index.of_sample(sample) if record.epoch == epoch]
    if chosen := [record for record in of_sample if mode in (None, record.mode)]:
        return chosen
    if of_sample:
        hint = f"it has {', '.join(record.mode for record in of_sample)}"
    else:
        known = sorted({name for _, name, _ in index.each_key()})
        hint = _similar(sample, known)
    raise UsageError(
        f"{run} contains no record of sample {sample!r} in {mode or 'any mode'}, epoch {epoch}",
        hint=hint,
    )


def _print_twin(
    run: Path, index: "RecordIndex", record: "Record", scores: "Sequence[Score]"
) -> None:
    """Print how the twin of a sample was answered, or that an unanswerable sample has none."""
    from agrotools.scoring.metrics import FAS
    from agrotools.scoring.slots import NO_TWIN, refused_twin, refused_twin_text

    answered = not record.sample.answerable and record.actions is None
    if answered and scores and all(row.metric != FAS for row in scores):
        typer.echo(NO_TWIN)
    if not record.sample.twin:
        return
    twin = index.get((record.mode, record.sample.twin, record.epoch))
    text = f"twin {record.sample.twin}: {_twin_state(twin)}"
    if refused_twin(scores):
        text += f", {refused_twin_text()} for this sample"
    if twin is not None:
        text += f"; {command_line('explain', run, record.sample.twin)}"
    typer.echo(text)


def _similar(sample: str, known: Sequence[str]) -> str:
    """Return a hint with ids like ``sample``: those that differ in leading zeros alone, else the closest ones."""
    import re
    from difflib import get_close_matches

    plain = {name: re.sub(r"(?<!\d)0+(?=\d)", "", name) for name in (*known, sample)}
    same = [name for name in known if plain[name] == plain[sample]]
    return f"e.g. {', '.join(same or get_close_matches(sample, known, n=3) or known[:3])}"


def _twin_state(twin: "Record | None") -> str:
    """Return how the twin of a sample was answered."""
    from agrotools.scoring.slots import answer_of, refused

    if twin is None:
        return "no record"
    if answer_of(twin) is None:
        return "no answer"
    kind = "answerable" if twin.sample.answerable else "unanswerable"
    return f"{kind}, {'refused' if refused(twin) else 'not refused'}"


def _list_records(run: Path, scored: "Iterable[_ScoredRecord]", *, as_json: bool) -> None:
    """Print score, cause and first error of records, the worst first; as text only the first 20."""
    from agrotools.report.html.data import listed_data
    from agrotools.report.layout import DASH, TableColumn, new_table, percent
    from agrotools.report.terminal import print_parts
    from agrotools.scoring.attribution import part_label

    records: list[dict[str, Any]] = []
    has_estimates = False
    for each in scored:
        records.append(listed_data(each.record, each.scores, each.shares))
        has_estimates = has_estimates or each.is_estimate
    if as_json:
        print_json(records)
        return
    records.sort(key=lambda each: (each["score"] is None, each["score"], each["id"]))
    has_several_modes = len({each["mode"] for each in records}) > 1
    columns = ["score", TableColumn(("lost by",), "words"), TableColumn(("first error",), "words")]
    table = new_table(f"{count_text(len(records), 'record')}, worst first", columns)
    table.columns[0] = TableColumn(kind="id")
    for each in records[:_LISTED]:
        name = f"{each['id']}, {each['mode']}" if has_several_modes else each["id"]
        score = DASH if each["score"] is None else percent(each["score"])
        cause = part_label(each["cause"]) if each["cause"] else ""
        table.add_row(name, score, cause, each["error"])
    print_parts([table])
    if len(records) > _LISTED:
        typer.echo(f"and {len(records) - _LISTED} more (--json lists all)")
    if has_estimates:
        _print_estimate_note(run)


def _print_prompts(run: Path, records: "Sequence[Record]", *, as_json: bool) -> None:
    """Print every stored request of ``records``."""
    from agrotools.core import UsageError
    from agrotools.runner.prompts import StoredPrompts
    from agrotools.runner.store import read_manifest

    prompts_of = StoredPrompts(run)
    stored = [_Prompts(record.key, prompts_of.of(record.key)) for record in records]
    if all(prompts.requests is None for prompts in stored):
        raise UsageError(
            f"{run} stores no prompt of sample {records[0].sample.id!r}",
            hint="prompts are stored where agrotools itself prompts a model: not for baselines and replays, not by "
            "agents of other packages, and not by releases before 0.2",
        )
    _show_prompts(run, read_manifest(run).model, stored, as_json=as_json)


def _preview(benchmark: str, sample: str, options: dict[str, Any], *, as_json: bool) -> None:
    """Print the requests that a run would send for a sample; for the first one if none is named."""
    import asyncio
    from tempfile import TemporaryDirectory

    from agrotools.core import UsageError
    from agrotools.runner.build import load_for_run, plan_run
    from agrotools.runner.config_file import read_config
    from agrotools.runner.estimate import PREVIEWED, items_of, requests_of
    from agrotools.runner.prompts import PromptLog, StoredPrompts

    given = {name: value for name, value in options.items() if value is not None}
    given["benchmark"] = benchmark
    (config,) = read_config(None, given, [PREVIEWED.name])
    loaded = load_for_run(config, sys.stderr, readings=new_readings(yes=False))
    plan = plan_run(config, loaded, PREVIEWED)
    sample = sample or plan.items.ids[0]
    if sample not in plan.items.ids:
        raise UsageError(
            f"{benchmark} has no sample {sample!r}", hint=_similar(sample, plan.items.ids)
        )
    with TemporaryDirectory() as folder:
        log = PromptLog(Path(folder))
        prompts: list[_Prompts] = []
        for item in items_of(plan, sample):
            requests, sizes = asyncio.run(requests_of(plan, item))
            log.write(log.lines(item.key, requests))
            prompts.append(_Prompts(item.key, StoredPrompts(Path(folder)).of(item.key), sizes))
        log.close()
        _show_prompts(Path(folder), PREVIEWED.name, prompts, as_json=as_json)


def _show_prompts(run: Path, model: str, prompts: "Sequence[_Prompts]", *, as_json: bool) -> None:
    """Print requests, of which ``run`` holds the images."""
    if as_json:
        print_json([_prompt_json(run, model, each) for each in prompts])
        return
    for each in prompts:
        mode, sample, epoch = each.key
        heading = f"{sample}, {mode}, epoch {epoch}"
        if each.requests is None:
            typer.echo(f"{heading}: no prompt is stored")
        else:
            _show_requests(run, model, heading, each.requests, each)


def _show_requests(
    run: Path, model: str, heading: str, requests: "Sequence[StoredRequest]", prompts: _Prompts
) -> None:
    """Print the requests for a sample, and the sizes of those that were not sent."""
    mode = prompts.key[0]
    are_sent = not prompts.sizes
    # Of requests that were not sent, the last one asks for the form again.
    may_be_fewer = not are_sent and mode != "step-by-step" and len(requests) > 2
    n_requests = count_text(len(requests), "request")
    typer.echo(f"{heading}: {'at most ' if may_be_fewer else ''}{n_requests} to {model}")
    tools_before: list[dict[str, Any]] = []
    for number, request in enumerate(requests, start=1):
        is_retry = may_be_fewer and number == len(requests)
        condition = ", only if a value is missing" if is_retry else ""
        typer.echo(f"\n=== request {number} of {len(requests)}{condition}")
        _print_tools(request.tools, tools_before)
        tools_before = request.tools
        if request.shared:
            typer.echo(f"--- messages 1 to {request.shared}, as before")
        new_messages = request.messages[request.shared :]
        for place, message in enumerate(new_messages, start=request.shared + 1):
            _print_message(run, place, message, kept=are_sent)
    for number, (characters, tokens) in enumerate(prompts.sizes, start=1):
        typer.echo(
            f"request {number}: {characters:,} characters without images, about {tokens:,} tokens with them"
        )


def _print_tools(tools: list[dict[str, Any]], before: list[dict[str, Any]]) -> None:
    """Print the tools of a request; ``before``: those of the request before it."""
    import orjson

    from agrotools.report.layout import harmless

    if not tools:
        return
    if tools == before:
        typer.echo(f"--- {count_text(len(tools), 'tool')}, as before")
        return
    lines = [f"--- {count_text(len(tools), 'tool')}"]
    lines += [orjson.dumps(tool, option=orjson.OPT_INDENT_2).decode() for tool in tools]
    typer.echo(harmless("\n".join(lines)))


def _prompt_json(run: Path, model: str, prompts: "_Prompts") -> dict[str, object]:
    """Return the requests for a sample, and the images that they refer to, by address."""
    mode, sample, epoch = prompts.key
    sent: list[dict[str, Any]] = [
        {"messages": request.messages, "tools": request.tools} for request in prompts.requests or ()
    ]
    for request, (characters, tokens) in zip(sent, prompts.sizes, strict=False):
        request |= {"characters": characters, "tokens": tokens}
    return {
        "sample": sample,
        "mode": mode,
        "epoch": epoch,
        "model": model,
        "requests": None if prompts.requests is None else sent,
        "images": _images_json(run, prompts),
    }


def _images_json(run: Path, prompts: "_Prompts") -> dict[str, dict[str, Any]]:
    """Return what is stored of the images in requests, by address; only images of a run have a file that stays."""
    from agrotools.runner.prompts import stored_image

    without = {"file"} if prompts.sizes else None
    images: dict[str, dict[str, Any]] = {}
    for url in dict.fromkeys(_image_urls(prompts.requests or ())):
        image = stored_image(run, url)
        if image is not None:
            images[url] = image.model_dump(exclude=without)
    return images


def _image_urls(requests: "Sequence[StoredRequest]") -> Iterator[str]:
    """Yield the addresses of the images in requests."""
    messages = [message for request in requests for message in request.messages]
    for message in messages:
        parts = message["content"]
        if isinstance(parts, list):
            yield from (part["image_url"]["url"] for part in parts if part["type"] == "image_url")


def _print_message(run: Path, place: int, message: dict[str, Any], *, kept: bool) -> None:
    """Print a message of a request; ``kept``: the files of its images stay."""
    import orjson

    from agrotools.report.layout import harmless

    answers = f", result of call {message['tool_call_id']}" if "tool_call_id" in message else ""
    lines = [f"--- message {place}: {message['role']}{answers}"]
    content = message["content"] or ""  # null beside native calls
    for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        if part["type"] == "text":
            lines.append(part["text"])
        else:
            lines.append(_image_line(run, part["image_url"]["url"], kept=kept))
    lines += [f"call: {orjson.dumps(call).decode()}" for call in message.get("tool_calls") or ()]
    typer.echo(harmless("\n".join(lines)))


def _image_line(run: Path, url: str, *, kept: bool) -> str:
    """Return a line about an image; ``kept``: its file stays."""
    from agrotools.report.layout import shortened
    from agrotools.runner.prompts import stored_image

    image = stored_image(run, url)
    if image is None:
        return f"[image at {shortened(url, 200)}]"
    if image.bytes is None:
        return f"[image, {image.media_type}, sha256 {image.sha256}, no longer in the run folder: {image.file}]"
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(run / image.file, formats=("JPEG", "PNG", "WEBP")) as opened:
            size = f"{opened.width} x {opened.height} px, "
    except (OSError, UnidentifiedImageError):
        size = ""
    place = f", {run / image.file}" if kept else ""
    return f"[image, {image.media_type}, {size}{image.bytes:,} bytes, sha256 {image.sha256}{place}]"


def attribute(
    run: Path, data_root: Path | None = None, workers: int = 2, as_json: bool = False
) -> None:
    """Split the points that a run lost by cause: plan, arguments, injected faults, each tool, reading, form."""
    from agrotools.analysis.attribution import attribute_run
    from agrotools.report.parts import attribution_tables
    from agrotools.report.terminal import print_parts

    attribution, notes = attribute_run(
        run, data_root=data_root, workers=workers, progress=terminal_progress()
    )
    if as_json:
        print_json(attribution.model_dump(mode="json") | {"notes": notes})
        return
    print_parts(attribution_tables(attribution, notes))
    typer.echo(f"per sample: {command_line('explain', run)}")
    typer.echo(f"on the page: {command_line('report', run)}")
