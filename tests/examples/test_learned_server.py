"""``examples/tool_servers/learned``: tiny models with random weights are found, loaded and asked as the real ones.

What random weights say means nothing; these tests are of the way there and back. The real weights are in no test.
"""

import json
import shutil
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("mcp", reason="needs the extra mcp")
pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/tool_servers/learned"))

from mcp.client.client import Client
from mcp.server.mcpserver.exceptions import ToolError
from weights import find_weights, torch_library

BINDING = Path(__file__).resolve().parents[2] / "examples/tool_servers/learned/binding.toml"
torch_is_here = find_spec("torch") is not None and find_spec("transformers") is not None
needs_torch = pytest.mark.skipif(
    not torch_is_here, reason="needs torch and transformers: python tests/environments.py learned"
)
needs_open_clip = pytest.mark.skipif(
    find_spec("open_clip") is None, reason="needs open_clip: python tests/environments.py learned"
)
needs_gpu = pytest.mark.skipif(
    not torch_is_here or not torch_library().cuda.is_available(),
    reason="needs a GPU, torch and transformers",
)
pytestmark = [
    pytest.mark.process,
    pytest.mark.usefixtures("no_network"),
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
    ),
]

PIXELS = np.random.default_rng(3).integers(0, 255, (60, 90, 3), dtype=np.uint8)
WHOLE = (0, 0, 90, 60)
_WORDS = ["[PAD]", *(f"w{number}" for number in range(1, 100)), "[UNK]", "[CLS]", "[SEP]"]


def _words(folder: Path, model_max_length: int) -> int:
    """A tokenizer of whole words; its size. Special tokens have the numbers of BERT, which GroundingDINO expects."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = [
        *_WORDS,
        *(f"x{number}" for number in range(len(_WORDS), 1012)),
        ".",
        "apple",
        "tree",
        "a",
        "photo",
        "of",
    ]
    names += [f"y{number}" for number in range(len(names), 1029)] + ["?", "weed", "lantana"]
    vocabulary = {name: number for number, name in enumerate(names)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        bos_token="[CLS]", eos_token="[SEP]", model_max_length=model_max_length,
    )  # fmt: skip
    fast.save_pretrained(folder)
    return len(names)


def _grounding_dino(folder: Path) -> None:
    import torch
    import transformers

    size = _words(folder, 32)
    torch.manual_seed(0)
    backbone = transformers.SwinConfig(
        image_size=64, patch_size=4, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 1, 1], window_size=4,
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    text = {"model_type": "bert", "vocab_size": size, "hidden_size": 16, "num_hidden_layers": 1,
            "num_attention_heads": 2, "intermediate_size": 32}  # fmt: skip
    config = transformers.GroundingDinoConfig(
        backbone_config=backbone, text_config=text, d_model=32, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, num_queries=20,
        max_text_len=32,
    )  # fmt: skip
    transformers.GroundingDinoForObjectDetection(config).save_pretrained(folder)
    transformers.GroundingDinoImageProcessorPil(
        size={"shortest_edge": 64, "longest_edge": 96}
    ).save_pretrained(folder)


def _open_clip(folder: Path, **text: Any) -> None:
    import open_clip
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    words: dict[str, Any] = {
        "context_length": 16,
        "vocab_size": 49408,
        "width": 16,
        "heads": 2,
        "layers": 1,
    }
    vision = {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16}
    model = open_clip.model.CLIP(embed_dim=16, vision_cfg=vision, text_cfg=words)
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    config = {"embed_dim": 16, "vision_cfg": vision, "text_cfg": {**words, **text}}
    preprocess = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
    (folder / "open_clip_config.json").write_text(
        json.dumps({"model_cfg": config, "preprocess_cfg": preprocess})
    )


def _sam2(folder: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    backbone = {"hidden_size": 8, "num_attention_heads": 1, "image_size": [128, 128],
                "blocks_per_stage": [1, 1, 2, 1], "embed_dim_per_stage": [8, 16, 32, 64],
                "num_attention_heads_per_stage": [1, 1, 2, 2], "window_positional_embedding_background_size": [7, 7],
                "global_attention_blocks": [3]}  # fmt: skip
    vision = {"backbone_config": {"model_type": "sam2_hiera_det_model", **backbone},
              "backbone_channel_list": [64, 32, 16, 8], "fpn_hidden_size": 32,
              "backbone_feature_sizes": [[32, 32], [16, 16], [8, 8]]}  # fmt: skip
    config = transformers.Sam2Config(
        vision_config=vision,
        prompt_encoder_config={"hidden_size": 32, "image_size": 128, "patch_size": 16},
        mask_decoder_config={"hidden_size": 32, "mlp_dim": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
                             "iou_head_hidden_dim": 32},
    )  # fmt: skip
    transformers.Sam2Model(config).save_pretrained(folder)


def _florence2(folder: Path) -> None:
    """It writes letters, eight at least: without that, random weights may end before they began."""
    import torch
    import transformers
    from tokenizers import pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    words = transformers.BartTokenizer(
        vocab={name: number for number, name in enumerate([*specials, *letters])},
        merges=[],
        extra_special_tokens={"image_token": "<image>"},
    )
    torch.manual_seed(0)
    text = {"vocab_size": len(words), "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "init_std": 1.0,
            "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16,
            "max_position_embeddings": 300}  # fmt: skip
    vision = {"depths": (1, 1, 1, 1), "embed_dim": (8, 8, 8, 8), "num_heads": (1, 1, 1, 1), "num_groups": (1, 1, 1, 1),
              "window_size": 4, "projection_dim": 16, "initializer_range": 0.5}  # fmt: skip
    config = transformers.Florence2Config(
        text_config=text,
        vision_config=vision,
        image_token_id=words.convert_tokens_to_ids("<image>"),
    )
    model = transformers.Florence2ForConditionalGeneration(config)
    no_letters = [number for number, name in enumerate(words.convert_ids_to_tokens(range(len(words))))
                    if name != "</s>" and not (name.isascii() and name.isalpha())]  # fmt: skip
    model.generation_config.suppress_tokens = no_letters
    model.generation_config.min_new_tokens = 8
    model.generation_config.exponential_decay_length_penalty = (8, 1.5)
    model.half().save_pretrained(folder)
    size = {"height": 64, "width": 64}
    # 64 px are 2 x 2 places after 32-fold shrinking, and their mean is one more.
    pictures = transformers.CLIPImageProcessor(
        size=size, crop_size=size, do_center_crop=False, image_seq_length=5
    )
    transformers.Florence2Processor(pictures, words).save_pretrained(folder)


def _made(make: Any, folder: Path, kind: str) -> Any:
    folder.mkdir(exist_ok=True)
    make(folder)
    return find_weights(str(folder), kind)


def _detector(folder: Path) -> Any:
    return _made(_grounding_dino, folder, "grounding-dino")


@needs_torch
def test_things_are_found_by_their_name(tmp_path: Path) -> None:
    from detection import find_by_text

    weights = _detector(tmp_path / "model")
    found = find_by_text(PIXELS, WHOLE, "apple tree", weights, score_min=0.0)
    again = find_by_text(PIXELS, WHOLE, "apple tree", weights, score_min=0.0)
    assert len(found.boxes) == len(found.scores) > 0
    assert (found.boxes[:, :2] < found.boxes[:, 2:]).all()
    assert (found.boxes >= 0).all()
    assert (found.boxes <= [90, 60, 90, 60]).all()
    assert (np.diff(found.scores) <= 0).all()
    assert np.array_equal(found.boxes, again.boxes)
    middle = float(np.median(found.scores))
    fewer = find_by_text(PIXELS, WHOLE, "apple tree", weights, score_min=middle)
    assert 0 < len(fewer.boxes) < len(found.boxes)
    assert (fewer.scores >= middle).all()


@needs_open_clip
def test_names_get_shares(tmp_path: Path) -> None:
    from description import rank_names

    weights = _made(_open_clip, tmp_path / "model", "open_clip")
    ranked = rank_names(PIXELS, WHOLE, ["lantana", "weed", "apple"], weights)
    assert sum(share for _, share in ranked) == pytest.approx(1)
    assert all(share > 0 for _, share in ranked)
    again = rank_names(PIXELS, WHOLE, ["apple", "lantana", "weed"], weights)
    assert dict(again) == pytest.approx(dict(ranked), abs=1e-6)
    with_words_elsewhere = partial(_open_clip, hf_model_name="roberta-base")
    elsewhere = _made(with_words_elsewhere, tmp_path / "elsewhere", "open_clip")
    with pytest.raises(ToolError, match="would be fetched"):
        rank_names(PIXELS, WHOLE, ["Lantana camara"], elsewhere)


@needs_torch
def test_a_box_gets_a_mask(tmp_path: Path) -> None:
    from detection import masks_in_boxes

    weights = _made(_sam2, tmp_path / "model", "sam2")
    boxes = np.array([[10.0, 10, 40, 40], [50, 5, 85, 55]])
    masks = masks_in_boxes(PIXELS, boxes, weights)
    assert masks.shape == (2, 60, 90)
    assert masks.dtype == np.bool_
    one = masks_in_boxes(PIXELS, boxes[:1], weights)
    assert np.array_equal(one[0], masks[0])
    assert masks_in_boxes(PIXELS, boxes[:0], weights).shape == (0, 60, 90)


def _answers(folder: Path) -> list[Any]:
    """What each kind of model says of one picture, from weights made anew in a folder."""
    from description import caption, rank_names
    from detection import find_by_text, masks_in_boxes

    folder.mkdir()
    found = find_by_text(PIXELS, WHOLE, "apple tree", _detector(folder / "dino"), score_min=0.0)
    box = np.array([[10.0, 10, 40, 40]])
    masks = masks_in_boxes(PIXELS, box, _made(_sam2, folder / "sam2", "sam2"))
    text = caption(PIXELS, WHOLE, _made(_florence2, folder / "florence2", "florence2"))
    names = ["lantana", "weed"]
    ranked = rank_names(PIXELS, WHOLE, names, _made(_open_clip, folder / "clip", "open_clip"))
    return [found.boxes, found.scores, masks.astype(float), text, dict(ranked)]


@needs_gpu
@needs_open_clip
def test_a_gpu_says_what_the_cpu_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    before = torch.cuda.memory_allocated()
    on_gpu = _answers(tmp_path / "gpu")
    assert torch.cuda.memory_allocated() > before
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for gpu, cpu in zip(on_gpu, _answers(tmp_path / "cpu"), strict=True):
        assert gpu == (cpu if isinstance(cpu, str) else pytest.approx(cpu, abs=1e-3))


@needs_torch
def test_broken_weights_are_refused(tmp_path: Path) -> None:
    from detection import masks_in_boxes

    broken = _made(_sam2, tmp_path / "sam2", "sam2")
    (broken.folder / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0not a header")
    with pytest.raises(ToolError, match="cannot be loaded as sam2"):
        masks_in_boxes(PIXELS, np.array([[0.0, 0, 5, 5]]), broken)


@needs_torch
def test_weights_of_half_precision_are_widened(tmp_path: Path) -> None:
    """Pictures come in single precision, which GroundingDINO in half precision refuses."""
    import transformers
    from detection import find_by_text

    weights = _detector(tmp_path / "model")
    found = find_by_text(PIXELS, WHOLE, "apple tree", weights, score_min=0.0)
    wide = transformers.GroundingDinoForObjectDetection.from_pretrained(weights.folder)
    shutil.copytree(weights.folder, tmp_path / "halved")
    wide.half().save_pretrained(tmp_path / "halved")
    halved = find_weights(str(tmp_path / "halved"), "grounding-dino")
    again = find_by_text(PIXELS, WHOLE, "apple tree", halved, score_min=0.0)
    assert again.scores.max() == pytest.approx(found.scores.max(), abs=0.01)


def _empty_model(
    folder: Path, weights: str = "model.safetensors", model_type: str = "sam2"
) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    (folder / weights).write_bytes(b"x")
    return folder


def test_weights_of_the_wrong_kind_or_format_are_refused(tmp_path: Path) -> None:
    model = _empty_model(tmp_path / "sam2")
    assert find_weights(str(model), "sam2").folder == model
    with pytest.raises(ToolError, match="is sam2, and grounding-dino is needed") as caught:
        find_weights(str(model), "grounding-dino")
    assert "IDEA-Research/grounding-dino-tiny" in str(caught.value)
    pickled = _empty_model(tmp_path / "pickled", weights="pytorch_model.bin")
    with pytest.raises(ToolError, match=r"no weights as safetensors, only pytorch_model\.bin"):
        find_weights(str(pickled), "sam2")
    (model / "config.json").write_text("[" * 100_000)
    with pytest.raises(ToolError, match="is of no kind that is known here"):
        find_weights(str(model), "sam2")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("owner/model", "not on this machine: hf download owner/model"),
        ("a/b/c", "neither OWNER/NAME of the hub nor"),
        ("./model", "neither OWNER/NAME of the hub nor"),
        ("../..", "neither OWNER/NAME of the hub nor"),
        ("/nowhere/at/all", "there is no folder"),
    ],
)
def test_a_model_that_is_not_there_is_refused_with_what_to_do(model: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        find_weights(model, "sam2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder of a server, with a picture."""
    files = tmp_path / "files"
    files.mkdir()
    Image.fromarray(PIXELS).save(files / "field.png")
    Image.fromarray(PIXELS).save(tmp_path / "secret.png")
    return files


async def test_the_tools_whose_models_are_named_are_served_as_unmeasured(
    tmp_path: Path, folder: Path
) -> None:
    from server import model_server

    weights = {
        "detector": str(_empty_model(tmp_path / "dino", model_type="grounding-dino")),
        "segmenter": str(_empty_model(tmp_path / "sam2")),
    }
    served: list[set[str]] = []
    for roles in ((), ("segmenter",), ("detector",), ("detector", "segmenter")):
        async with Client(model_server(folder, {role: weights[role] for role in roles})) as client:
            tools = (await client.list_tools()).tools
        assert all(tool.description.endswith("Accuracy: unmeasured.") for tool in tools)
        served.append({tool.name for tool in tools})
    assert served == [set(), set(), {"find_objects"}, {"find_objects", "outline_objects"}]
    with pytest.raises(ToolError, match="is sam2, and florence2 is needed"):
        model_server(folder, {"captioner": weights["segmenter"]})


async def test_the_binding_fits_what_is_served(tmp_path: Path, folder: Path) -> None:
    pytest.importorskip("agrotools.served", reason="needs a client of tool servers")
    from server import model_server

    from agrotools.calling import get_tool
    from agrotools.served.binding import check_against, read_binding
    from agrotools.served.session import Listing, ServedTool

    kinds = {"detector": "grounding-dino", "segmenter": "sam2", "captioner": "florence2"}
    named = {
        role: str(_empty_model(tmp_path / role, model_type=kind)) for role, kind in kinds.items()
    }
    async with Client(model_server(folder, named)) as client:
        served = [
            ServedTool(tool.name, tool.description, tool.input_schema, tool.output_schema)
            for tool in (await client.list_tools()).tools
        ]
    binding = read_binding(BINDING, get_tool)
    check_against(binding, Listing("learned-models", "", tuple(served)), get_tool)


async def test_calls_on_what_is_no_picture_of_the_folder_are_refused(
    tmp_path: Path, folder: Path
) -> None:
    from server import model_server

    (folder / "notes.png").write_text("no picture")
    detector = str(_empty_model(tmp_path / "dino", model_type="grounding-dino"))
    async with Client(model_server(folder, {"detector": detector})) as client:

        async def refusal(**arguments: Any) -> str:
            result = await client.call_tool("find_objects", {"text": "apple", **arguments})
            assert result.is_error
            return result.content[0].text

        for name in ("../secret.png", str(tmp_path / "secret.png"), "none.png"):
            assert "has no file" in await refusal(image=name)
        assert "is no picture" in await refusal(image="notes.png")
        assert "has 3 numbers" in await refusal(image="field.png", region=[1, 2, 3])
        assert "shows nothing" in await refusal(image="field.png", region=[90, 0, 120, 60])
        assert "score_min" in await refusal(image="field.png", score_min=2)


@needs_open_clip
@needs_torch
async def test_all_tools_answer_over_mcp(tmp_path: Path, folder: Path) -> None:
    from server import model_server

    named = {
        "detector": str(_detector(tmp_path / "dino").folder),
        "segmenter": str(_made(_sam2, tmp_path / "sam2", "sam2").folder),
        "captioner": str(_made(_florence2, tmp_path / "florence2", "florence2").folder),
        "namer": str(_made(_open_clip, tmp_path / "clip", "open_clip").folder),
    }
    region = [20, 10, 80, 55]
    async with Client(model_server(folder, named)) as client:

        async def result(tool: str, **arguments: Any) -> dict[str, Any]:
            reply = await client.call_tool(tool, {"image": "field.png", **arguments})
            assert not reply.is_error, reply.content
            return reply.structured_content

        found = await result("find_objects", text="apple tree", region=region, score_min=0.0)
        outlined = await result("outline_objects", text="apple tree", score_min=0.0)
        none = await result("outline_objects", text="apple tree", score_min=1.0)
        described = await result("describe_picture", region=region)
        elsewhere = await result("describe_picture", region=[0, 0, 30, 55])
        ranked = await result("rank_names", names=["lantana", "weed", "apple"])
    assert found["count"] == len(found["boxes"]) == len(found["scores"]) > 0
    assert all(x0 >= 20 and y0 >= 10 and x1 <= 80 and y1 <= 55 for x0, y0, x1, y1 in found["boxes"])
    assert found["model"] == named["detector"]
    assert outlined["count"] == len(outlined["pixels"]) == len(outlined["boxes"]) > 0
    assert max(outlined["pixels"]) <= outlined["total_px"]
    assert outlined["total_px"] <= min(sum(outlined["pixels"]), 60 * 90)
    assert (none["count"], none["pixels"], none["total_px"]) == (0, [], 0)
    assert len(described["description"]) >= 8
    assert described["description"] != elsewhere["description"]
    assert set(ranked["names"]) == {"lantana", "weed", "apple"}
    assert ranked["shares"] == sorted(ranked["shares"], reverse=True)


@needs_torch
def test_torch_gets_one_thread() -> None:
    import torch

    torch.set_num_threads(2)
    assert torch_library().get_num_threads() == 1
