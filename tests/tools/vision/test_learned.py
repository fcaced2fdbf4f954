"""Large open models, as tiny ones with random weights: that they are found, loaded and asked as they should be.

What random weights say means nothing; these tests are of the way there and back. The real weights are in no test.
"""

import json
import os
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agrotools.core import ToolError
from agrotools.core.files import hub_cache
from agrotools.core.texts import install_command
from agrotools_tools.learned.weights import find_weights, library, weight_files

torch_is_here = find_spec("torch") is not None and find_spec("transformers") is not None
needs_torch = pytest.mark.skipif(
    not torch_is_here, reason="needs torch and transformers (the extra learned)"
)
needs_open_clip = pytest.mark.skipif(
    find_spec("open_clip") is None, reason="needs open_clip (the extra learned)"
)
needs_gpu = pytest.mark.skipif(
    not torch_is_here or not library("torch").cuda.is_available(),
    reason="needs a GPU, torch and transformers",
)
pytestmark = [
    pytest.mark.usefixtures("no_network"),
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
    ),
]

PIXELS = np.random.default_rng(3).integers(0, 255, (60, 90, 3), dtype=np.uint8)
WHOLE = (0, 0, 90, 60)
_WORDS = ["[PAD]", *(f"w{number}" for number in range(1, 100)), "[UNK]", "[CLS]", "[SEP]"]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> None:
    if torch_is_here:
        library("torch")


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


def _made(make: Any, folder: Path) -> Any:
    folder.mkdir(exist_ok=True)
    make(folder)
    return find_weights(str(folder))


@needs_torch
def test_things_are_found_by_their_name(tmp_path: Path) -> None:
    from agrotools_tools.learned.detection import find_by_text

    weights = _made(_grounding_dino, tmp_path / "model")
    assert weights.kind == "grounding-dino"
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
    from agrotools_tools.learned.description import rank_names

    weights = _made(_open_clip, tmp_path / "model")
    assert weights.kind == "open_clip"
    ranked = rank_names(PIXELS, WHOLE, ["lantana", "weed", "apple"], weights).candidates
    assert sum(share for _, share in ranked) == pytest.approx(1)
    assert all(share > 0 for _, share in ranked)
    again = rank_names(PIXELS, WHOLE, ["apple", "lantana", "weed"], weights).candidates
    assert dict(again) == pytest.approx(dict(ranked), abs=1e-6)
    elsewhere = _made(partial(_open_clip, hf_model_name="roberta-base"), tmp_path / "elsewhere")
    with pytest.raises(ToolError, match="would be fetched"):
        rank_names(PIXELS, WHOLE, ["Lantana camara"], elsewhere)


@needs_torch
def test_a_box_gets_a_mask(tmp_path: Path) -> None:
    from agrotools_tools.learned.detection import masks_in_boxes

    weights = _made(_sam2, tmp_path / "model")
    boxes = np.array([[10.0, 10, 40, 40], [50, 5, 85, 55]])
    masks = masks_in_boxes(PIXELS, boxes, weights)
    assert masks.shape == (2, 60, 90)
    assert masks.dtype == np.bool_
    one = masks_in_boxes(PIXELS, boxes[:1], weights)
    assert np.array_equal(one[0], masks[0])
    assert masks_in_boxes(PIXELS, boxes[:0], weights).shape == (0, 60, 90)


def _answers(folder: Path) -> list[Any]:
    """What each kind of model says of one picture, from weights made anew in a folder."""
    from agrotools_tools.learned.description import describe, rank_names
    from agrotools_tools.learned.detection import find_by_text, masks_in_boxes

    folder.mkdir()
    found = find_by_text(
        PIXELS, WHOLE, "apple tree", _made(_grounding_dino, folder / "dino"), score_min=0.0
    )
    masks = masks_in_boxes(PIXELS, np.array([[10.0, 10, 40, 40]]), _made(_sam2, folder / "sam2"))
    text = describe(PIXELS, WHOLE, None, _made(_florence2, folder / "florence2")).text
    ranked = rank_names(
        PIXELS, WHOLE, ["lantana", "weed"], _made(_open_clip, folder / "clip")
    ).candidates
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


@pytest.mark.process
@needs_gpu
async def test_a_worker_uses_the_gpu(tmp_path: Path, field: Path) -> None:
    from agrotools.calling.execution import ToolExecutor
    from agrotools.calling.workspace import Workspace
    from agrotools.core import SampleFile, ToolCall

    finder, outliner = (
        _made(make, tmp_path / make.__name__).folder for make in (_grounding_dino, _sam2)
    )
    workspace = Workspace(
        (SampleFile(name="photo", path=str(field), kind="image"),), tmp_path / "artifacts"
    )
    call = ToolCall(
        tool="segment_objects", arguments={"image": "photo", "text": "apple tree", "score_min": 0.0}
    )
    async with ToolExecutor(
        1, backends={"segment_objects": f"learned:{finder}+{outliner}"}
    ) as executor:
        outcomes = [await executor.run(call, workspace, ["segment_objects"]) for _ in range(2)]
        assert len(executor.worker_pids) == 1
    assert outcomes[0].observation == outcomes[1].observation
    assert outcomes[0].observation.error is None
    assert outcomes[0].observation.result is not None
    assert outcomes[0].observation.result["count"] > 0


@needs_torch
def test_outlines_need_two_models(tmp_path: Path, field: Path) -> None:
    from agrotools.calling.workspace import artifacts_in
    from agrotools_tools.general.objects import segment_objects

    finder, outliner = (
        _made(make, tmp_path / make.__name__).folder for make in (_grounding_dino, _sam2)
    )
    both = f"learned:{finder}+{outliner}"
    with (
        artifacts_in(tmp_path / "out", backend=f"learned:{finder}"),
        pytest.raises(ToolError, match="two models"),
    ):
        segment_objects(image=field, text="apple tree")
    assert {path.parent for path in segment_objects.files_for(both)} == {finder, outliner}
    with artifacts_in(tmp_path / "out", backend=both):
        found = segment_objects(image=field, text="apple tree", score_min=0.0)
        none = segment_objects(image=field, text="apple tree", score_min=1.0)
    assert found.count == len(found.pixels) == len(found.boxes) == len(found.scores) > 0
    assert max(found.pixels) <= found.total_px <= min(sum(found.pixels), 60 * 90)
    assert (none.count, none.pixels, none.total_px) == (0, (), 0)


@needs_torch
def test_the_wrong_kind_and_broken_weights_are_refused(tmp_path: Path) -> None:
    from agrotools_tools.learned.detection import find_by_text, masks_in_boxes

    broken = _made(_sam2, tmp_path / "sam2")
    with pytest.raises(ToolError, match="does not find things by their name") as caught:
        find_by_text(PIXELS, WHOLE, "apple", broken, score_min=0.3)
    assert "IDEA-Research/grounding-dino-tiny" in str(caught.value)
    (broken.folder / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0not a header")
    with pytest.raises(ToolError, match="cannot be loaded as sam2") as caught:
        masks_in_boxes(PIXELS, np.array([[0.0, 0, 5, 5]]), broken)
    assert caught.value.kind == "backend_unavailable"


def _empty_model(
    folder: Path, weights: str = "model.safetensors", model_type: str = "sam2"
) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    (folder / weights).write_bytes(b"x")
    return folder


def test_the_hub_cache_is_read_as_the_hub_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert hub_cache() == tmp_path
    cached = tmp_path / "models--owner--model"
    _empty_model(cached / "snapshots" / "abc")
    _empty_model(cached / "snapshots" / "def", weights="pytorch_model.bin")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    if torch_is_here:
        assert find_weights("owner/model").folder.name == "abc"
    else:
        with pytest.raises(ToolError) as caught:
            find_weights("owner/model")
        assert caught.value.hint == install_command("learned")
    (cached / "refs" / "main").write_text("def")
    with pytest.raises(ToolError, match=r"no weights as safetensors, only pytorch_model\.bin"):
        find_weights("owner/model")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("owner/model", "nothing is downloaded unasked"),
        ("model", "not the name of a model on the hub"),
        ("a/b/c", "not the name of a model on the hub"),
        ("../..", "not an absolute path"),
        ("./model", "not an absolute path"),
        ("~/model", "not an absolute path"),
        ("/nowhere/at/all", "there is no folder"),
        ("..//..", "not an absolute path"),
        ("x/..", "not the name of a model on the hub"),
    ],
)
def test_what_is_not_there_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, said: str
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ToolError, match=said) as caught:
        find_weights(model)
    assert caught.value.kind == "backend_unavailable"
    assert caught.value.hint


def test_other_kinds_and_no_kind_are_refused(tmp_path: Path) -> None:
    odd = _empty_model(tmp_path / "odd", model_type="gpt2")
    with pytest.raises(ToolError, match=r"of no kind that is known here \(gpt2\)"):
        find_weights(str(odd))
    (odd / "config.json").write_text("[" * 100_000)
    with pytest.raises(ToolError, match="of no kind that is known here"):
        find_weights(str(odd))


@needs_torch
def test_a_tool_counts_with_a_model_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agrotools.calling.workspace import artifacts_in
    from agrotools_tools.counting.tool import count_objects

    weights = _made(_grounding_dino, tmp_path / "model")
    backend = f"learned:{weights.folder}"
    assert count_objects.has_backend(backend)
    assert set(weight_files(backend)) == set(weights.files)
    assert set(count_objects.files_for(backend)) >= set(weights.files)
    Image.fromarray(PIXELS).save(tmp_path / "field.png")
    with artifacts_in(tmp_path / "out", backend=backend):
        counted = count_objects(
            tmp_path / "field.png", "apple", region=(20, 10, 80, 55), score_min=0.0
        )
    assert counted.mode == "learned"
    assert counted.boxes is not None
    assert counted.count > 0
    assert all(20 <= x < 80 and 10 <= y < 55 for x, y in counted.centres or ())
    assert "learned_model" in counted.flags
    assert os.fspath(weights.folder) in counted.notes[0]


@pytest.fixture
def field(tmp_path: Path) -> Path:
    Image.fromarray(PIXELS).save(tmp_path / "field.png")
    return tmp_path / "field.png"


@needs_torch
@pytest.mark.skipif(
    find_spec("torchvision") is None, reason="needs torchvision (the extra learned)"
)
def test_a_region_is_put_into_words_beside_its_numbers(tmp_path: Path, field: Path) -> None:
    from agrotools.calling.workspace import artifacts_in
    from agrotools_tools.regions.tool import describe_region

    weights = _made(_florence2, tmp_path / "model")
    assert weights.kind == "florence2"
    backend = f"learned:{weights.folder}"
    assert set(describe_region.files_for(backend)) >= set(weights.files)
    with artifacts_in(tmp_path / "out", backend=backend):
        described = describe_region(field, region=(20, 10, 80, 55), question="Which disease is it?")
        again = describe_region(field, region=(20, 10, 80, 55))
        elsewhere = describe_region(field, region=(0, 0, 30, 55))
    assert described.description
    assert len(described.description) >= 8
    assert described.description.isalpha()
    assert described.description == again.description != elsewhere.description
    assert {"learned_model", "question_not_answered"} <= set(described.flags)
    assert "question_not_answered" not in again.flags
    assert any("not measured" in note for note in described.notes)
    assert described.area_px == 60 * 45
    with artifacts_in(tmp_path / "out"):
        assert describe_region(field).description is None


@needs_torch
def test_a_model_that_writes_nothing_describes_no_region(tmp_path: Path, field: Path) -> None:
    from agrotools.calling.workspace import artifacts_in
    from agrotools_tools.regions.tool import describe_region

    weights = _made(_sam2, tmp_path / "model")
    with (
        artifacts_in(tmp_path / "out", backend=f"learned:{weights.folder}"),
        pytest.raises(ToolError, match="does not write text") as caught,
    ):
        describe_region(field)
    assert "florence-community/Florence-2-base" in str(caught.value)


@needs_open_clip
def test_a_weed_gets_the_likeliest_of_the_names(tmp_path: Path, field: Path) -> None:
    from agrotools.calling.workspace import artifacts_in
    from agrotools_tools.learned.description import rank_names
    from agrotools_tools.recognition.identify_weed import identify_weed

    weights = _made(_open_clip, tmp_path / "model")
    names = ["lantana", "weed", "apple"]
    shares = dict(rank_names(PIXELS, (20, 10, 80, 55), names, weights).candidates)
    with artifacts_in(tmp_path / "out", backend=f"learned:{weights.folder}"):
        found = identify_weed(field, region=(20, 10, 80, 55), candidates=names)
        fewer = identify_weed(field, region=(20, 10, 80, 55), candidates=names, top_k=1)
    assert [one.score for one in found.candidates] == [None] * 3
    assert [one.label for one in found.candidates] == sorted(names, key=lambda name: -shares[name])
    assert fewer.candidates == found.candidates[:1]
    assert next(one.kb_id for one in found.candidates if one.label == "lantana") == "weed.lantana"
    assert found.abstained is (max(shares.values()) < 0.5)
    assert {"learned_model", "not_calibrated"} <= set(found.flags)
    assert any("not calibrated" in note for note in found.notes)


@needs_torch
def test_torch_gets_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    torch.set_num_threads(2)
    assert library("torch").get_num_threads() == 1


@needs_torch
def test_weights_of_half_precision_are_widened(tmp_path: Path) -> None:
    """Pictures come in single precision, which GroundingDINO in half precision refuses."""
    import transformers

    from agrotools_tools.learned.detection import find_by_text

    weights = _made(_grounding_dino, tmp_path / "model")
    found = find_by_text(PIXELS, WHOLE, "apple tree", weights, score_min=0.0)
    wide = transformers.GroundingDinoForObjectDetection.from_pretrained(weights.folder)
    wide.half().save_pretrained(weights.folder)
    halved = find_weights(str(weights.folder))
    assert halved != weights
    again = find_by_text(PIXELS, WHOLE, "apple tree", halved, score_min=0.0)
    assert again.scores.max() == pytest.approx(found.scores.max(), abs=0.01)
