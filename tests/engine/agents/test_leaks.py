"""No request to a model holds anything of a sample's gold: markers are planted in all of it and looked for."""

import base64
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from agrotools.agents.llm import LLMAgent
from agrotools.agents.modes import run_single_shot
from agrotools.core import Sample, Trajectory
from agrotools.models.openai_compatible import OpenAICompatibleModel
from agrotools_benchmarks._dialogs.lagent import LagentAgent
from agrotools_benchmarks.agent_x.protocol import AgentXAgent
from support.openai_server import Body, completion, serve
from support.small_sample import run_in_mode, view_of

pytestmark = pytest.mark.process

NUMBER = 98765.4321
ALWAYS_HIDDEN = (
    *(
        "zzvalue",
        "zzalias",
        "zzfact",
        "zznot",
        "zzfrom",
        "zztruth",
        "zzcluster",
        "zzmeta",
        "zztemplate",
        "zzsource",
    ),
    *(
        "zzpath",
        "zzexif",
        "zzcomment",
        "zzpngtext",
        "zztiff",
        "zzhash",
        "zzid",
        "zzfamily",
        "zztask",
        "zzartifactsha",
    ),
    *("98765", "zzgroup77"),
)


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    folder = tmp_path / "zzpath"
    folder.mkdir()
    image = Image.new("RGB", (40, 30), (10, 90, 20))
    exif = Image.Exif()
    exif[0x010E] = "zzexif"
    image.save(folder / "zzpath.jpg", exif=exif, comment=b"zzcomment")
    text = PngInfo()
    text.add_text("Description", "zzpngtext")
    image.convert("L").point(lambda value: value % 2).save(folder / "zzpath.png", pnginfo=text)
    image.save(folder / "zzpath.tif", tiffinfo={270: "zztiff"})
    planted = b"".join(file.read_bytes() for file in sorted(folder.iterdir()))
    assert all(marker in planted for marker in (b"zzexif", b"zzcomment", b"zzpngtext", b"zztiff"))
    (folder / "zzpath.csv").write_text("zzpath")
    (folder / "zzpath_broken.jpg").write_bytes(b"\xff\xd8zzcomment")
    return Sample.model_validate(
        {
            "id": "zzid",
            "query": "How much is it?",
            "files": [
                {"name": "image_1.jpg", "path": "zzpath/zzpath.jpg", "kind": "image", "sha256": "zzhash"},
                {"name": "mask_1.png", "path": "zzpath/zzpath.png", "kind": "mask", "sha256": "zzhash"},
                {"name": "bands_1.tif", "path": "zzpath/zzpath.tif", "kind": "raster"},
                {"name": "image_2.jpg", "path": "zzpath/zzpath_broken.jpg", "kind": "image"},
                {"name": "image_3.jpg", "path": "zzpath/zzpath_missing.jpg", "kind": "image"},
                {"name": "table_1.csv", "path": "zzpath/zzpath.csv", "kind": "table"},
            ],
            "family": "zzfamily", "task_type": "zztask", "answer_type": "tolerance", "template": "zztemplate",
            "source": "zzsource", "toolset": ["calculate"], "cluster": "zzcluster", "metadata": {"zzmeta": "zzmeta"},
            "answer": [
                {"name": "share", "label": "share", "type": "tolerance", "value": NUMBER,
                 "from": "steps[0].observation.zzfrom"},
                {"name": "species", "label": "species", "type": "exact", "value": "zzvalue",
                 "aliases": {"zzvalue": ["zzalias"]}},
                {"name": "advice", "label": "advice", "type": "open_text",
                 "facts": [{"phrases": ["zzfact"], "not": ["zznot"]}]},
            ],
            "reference": {"steps": [step(number) for number in range(3)]},
        }
    )  # fmt: skip


def step(number: int) -> dict[str, object]:
    drawn = {
        "name": f"zzdrawn{number}.png",
        "kind": "overlay",
        "media_type": "image/png",
        "sha256": "zzartifactsha",
    }
    return {
        "tool": "calculate", "truth": {"value": "zztruth"}, "group": 77, "thought": f"zzthought{number}",
        "arguments": {"expression": f"zzargument{number}", "unit": {"$ref": f"zzfrom[{number}]", "value": "m"}},
        "observation": {"result": {"value": number, "expression": f"zzobserved{number}"}, "artifacts": [drawn]},
    }  # fmt: skip


def searchable(body: Body) -> str:
    """A request as text: its JSON, and the bytes of its images."""
    raw = json.dumps(body, ensure_ascii=False)
    pictures = [
        base64.b64decode(data).decode("latin-1")
        for data in re.findall(r"base64,([A-Za-z0-9+/=]+)", raw)
    ]
    return "\n".join([raw, *pictures])


def found(body: Body, markers: Sequence[str]) -> list[str]:
    text = searchable(body)
    return [marker for marker in markers if marker in text]


def of_steps(numbers: Sequence[int]) -> list[str]:
    return [
        f"zz{part}{number}"
        for part in ("argument", "observed", "drawn", "thought")
        for number in numbers
    ]


def replies() -> Iterator[str]:
    """Something of everything, so that every kind of message is sent."""
    yield '{"tool": "calculate", "arguments": {'
    yield 'Action: calculate\nAction Input: {"expression": "1+1"}'
    yield 'Action: no_such_tool\nAction Input: {}\nAction: calculate\nAction Input: {"expression": "2+"}'
    while True:
        yield "Thought: enough\nFinal Answer: share: 1"


@pytest.mark.parametrize("images", [True, False])
@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
@pytest.mark.parametrize("mode", ["no-tool", "step-by-step", "end-to-end"])
async def test_no_request_holds_gold(
    sample: Sample, tmp_path: Path, mode, protocol, images: bool
) -> None:
    said = replies()
    async with serve(lambda _body: completion(next(said))) as endpoint:
        model = OpenAICompatibleModel("m", base_url=endpoint.base_url)
        policy = LLMAgent(model, mode=mode, protocol=protocol, images=images)
        outcome = await run_in_mode(mode, policy, sample, view_of(sample, tmp_path))
        assert not isinstance(outcome, Trajectory) or outcome.termination == "no_form"
        await model.close()
    sent = endpoint.requests
    # The last two requests are for the form, of which a value is missing.
    assert len(sent) == {"no-tool": 3, "step-by-step": 6, "end-to-end": 6}[mode]
    for number, body in enumerate(sent):
        assert found(body, ALWAYS_HIDDEN) == []
        shown = range(min(number, 3)) if mode == "step-by-step" else range(0)
        assert found(body, of_steps(range(3))) == of_steps(list(shown))
        assert ("base64," in json.dumps(body)) is images
        assert "image_3.jpg: image; cannot be shown: the file is missing" in json.dumps(body)


@pytest.mark.parametrize("images", [True, False])
@pytest.mark.parametrize("mode", ["step-by-step", "end-to-end"])
async def test_no_request_in_the_protocol_of_gta_holds_gold(
    sample: Sample, tmp_path: Path, mode, images: bool
) -> None:
    said = replies()
    async with serve(lambda _body: completion(next(said))) as endpoint:
        model = OpenAICompatibleModel("m", base_url=endpoint.base_url)
        policy = LagentAgent(model, mode, images=images)
        await run_in_mode(mode, policy, sample, view_of(sample, tmp_path), 10, None)
        await model.close()
    assert len(endpoint.requests) == 6  # the last two are for the form, of which a value is missing
    for number, body in enumerate(endpoint.requests):
        assert found(body, ALWAYS_HIDDEN) == []
        shown = range(min(number, 3)) if mode == "step-by-step" else range(0)
        told = [marker for marker in of_steps(list(shown)) if "thought" not in marker]
        assert found(body, of_steps(range(3))) == told
        assert ("base64," in json.dumps(body)) is images


async def test_no_request_in_the_protocol_of_agent_x_holds_gold(
    sample: Sample, tmp_path: Path
) -> None:
    async with serve(lambda _body: completion("no JSON")) as endpoint:
        model = OpenAICompatibleModel("m", base_url=endpoint.base_url)
        trajectory = await run_single_shot(AgentXAgent(model), view_of(sample, tmp_path))
        await model.close()
    assert trajectory.termination == "unparseable"
    assert len(endpoint.requests) == 2
    for body in endpoint.requests:
        assert found(body, (*ALWAYS_HIDDEN, *of_steps(range(3)))) == []
        assert "base64," in json.dumps(body)


def with_other_gold(sample: Sample) -> Sample:
    """``sample`` with everything changed that a policy must not be able to tell: gold, sources, measured difficulty."""
    other_step = sample.reference.steps[0].model_copy(
        update={"truth": {"value": 1}, "thought": "other"}
    )
    return sample.model_copy(
        update={
            "answer": tuple(
                slot.model_copy(update=changes)
                for slot, changes in zip(
                    sample.answer,
                    ({"value": "rust", "from_": "'rust'", "weight": 0.2}, {"value": False}, {"value": "mask_1.png"},
                     {"value": ("smut",)}, {"value": 3.0, "abs_tol": 2.0}),
                    strict=True,
                )
            ),
            "reference": sample.reference.model_copy(update={"steps": (other_step, *sample.reference.steps[1:])}),
            "template": "other", "source": "other", "cluster": "other", "metadata": {"other": 1}, "groups": {"a": "b"},
            "difficulty": {"calls": 9.0}, "canary": "other",
        }
    )  # fmt: skip


@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
@pytest.mark.parametrize("mode", ["no-tool", "step-by-step", "end-to-end"])
async def test_requests_are_the_same_whatever_the_gold_is(
    sample: Sample, tmp_path: Path, mode, protocol
) -> None:
    slots = [
        {"name": "disease", "label": "disease", "type": "exact", "value": "smut", "choices": ["rust", "smut"],
         "aliases": {"smut": ["黑粉病"]}},
        {"name": "spread", "label": "it has spread", "type": "boolean", "value": True},
        {"name": "leaf", "label": "leaf", "type": "file", "value": "image_1.jpg",
         "choices": ["image_1.jpg", "mask_1.png"]},
        {"name": "seen", "label": "seen", "type": "choice_set", "value": ["rust"], "choices": ["rust", "smut"]},
        {"name": "share", "label": "share", "type": "tolerance", "value": 31.0, "unit": "%", "abs_tol": 1.0},
    ]  # fmt: skip
    first = Sample.model_validate({**sample.model_dump(by_alias=True), "answer": slots})
    sent: list[list[Body]] = []
    for each in (first, with_other_gold(first)):
        said = replies()
        async with serve(lambda _body, said=said: completion(next(said))) as endpoint:
            model = OpenAICompatibleModel("m", base_url=endpoint.base_url)
            policy = LLMAgent(model, mode=mode, protocol=protocol)
            await run_in_mode(mode, policy, each, view_of(each, tmp_path))
            await model.close()
        # Step by step the reference is shown from the second request on.
        sent.append(endpoint.requests[:1] if mode == "step-by-step" else endpoint.requests)
    assert sent[0] == sent[1]
