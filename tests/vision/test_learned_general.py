"""Large models of the general tools, as tiny ones with random weights: found, loaded and asked as they should be.

What random weights say means nothing; these tests are of the way there and back. The real weights are in no test.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agrotools.core import ToolError
from agrotools.tools.general.large_models import (
    describe_attribute,
    describe_image,
    generate_image,
    read_formula,
    stylize_image,
)
from agrotools.tools.general.objects import detect_objects, segment_objects
from agrotools.tools.workspace import artifacts_in
from agrotools.vision.learned.weights import find_weights

torch_is_here = find_spec("torch") is not None and find_spec("transformers") is not None
diffusers_is_here = torch_is_here and find_spec("diffusers") is not None
pytestmark = [
    pytest.mark.usefixtures("no_network"),
    pytest.mark.skipif(not torch_is_here, reason="needs torch and transformers (the extra learned)"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]
needs_diffusers = pytest.mark.skipif(not diffusers_is_here, reason="needs diffusers (the extra learned)")

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *"what is the colour of this picture show does ? red green a".split(),
]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "picture.png"
    Image.fromarray(np.random.default_rng(3).integers(0, 255, (60, 90, 3), dtype=np.uint8)).save(path)
    return path


def _words(folder: Path) -> int:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", numbers["[CLS]"]), ("[SEP]", numbers["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        bos_token="[CLS]", eos_token="[SEP]", model_max_length=64,
    ).save_pretrained(folder)  # fmt: skip
    return len(WORDS)


def _blip(folder: Path, answers: bool = True) -> None:
    import torch
    import transformers

    size = _words(folder)
    torch.manual_seed(0)
    text = {"vocab_size": size, "hidden_size": 16, "encoder_hidden_size": 16, "intermediate_size": 32,
            "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 80, "bos_token_id": 2,
            "eos_token_id": 3, "sep_token_id": 3, "pad_token_id": 0, "initializer_range": 1.0}  # fmt: skip
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
              "image_size": 32, "patch_size": 16}  # fmt: skip
    config = transformers.BlipConfig(text_config=text, vision_config=vision, projection_dim=16)
    make = transformers.BlipForQuestionAnswering if answers else transformers.BlipForConditionalGeneration
    make(config).save_pretrained(folder)
    transformers.BlipImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)


def _rt_detr(folder: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    backbone = transformers.RTDetrResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    config = transformers.RTDetrConfig(
        backbone_config=backbone, encoder_hidden_dim=16, encoder_in_channels=[8, 8, 8], feat_strides=[8, 16, 32],
        encoder_layers=1, encoder_ffn_dim=16, encoder_attention_heads=2, d_model=16, num_queries=20,
        decoder_in_channels=[16, 16, 16], decoder_ffn_dim=16, decoder_layers=1, decoder_attention_heads=2,
        decoder_n_points=2, num_labels=2, id2label={0: "cow", 1: "car"}, label2id={"cow": 0, "car": 1},
    )  # fmt: skip
    transformers.RTDetrForObjectDetection(config).save_pretrained(folder)
    transformers.RTDetrImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(folder)


def _writer(folder: Path) -> None:
    import torch
    import transformers

    size = _words(folder)
    torch.manual_seed(0)
    seeing = transformers.ViTConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, image_size=32, patch_size=16
    )
    writing = transformers.TrOCRConfig(
        vocab_size=size, d_model=16, decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=16,
        max_position_embeddings=600, init_std=1.0, bos_token_id=2, eos_token_id=3, pad_token_id=0,
        decoder_start_token_id=2,
    )  # fmt: skip
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(seeing, writing)
    config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 2, 0, 3
    model = transformers.VisionEncoderDecoderModel(config)
    model.generation_config.decoder_start_token_id = 2
    model.generation_config.pad_token_id = 0
    model.generation_config.eos_token_id = 3
    model.generation_config.min_new_tokens = 3
    model.generation_config.suppress_tokens = [0, 1, 2, 4]
    model.save_pretrained(folder)
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)


def _made(make: Callable[[Path], Any], folder: Path) -> str:
    folder.mkdir()
    make(folder)
    return f"learned:{folder}"


def test_a_question_about_a_picture_is_answered(tmp_path: Path, picture: Path) -> None:
    backend = _made(_blip, tmp_path / "model")
    assert find_weights(backend.removeprefix("learned:")).kind == "blip"
    with artifacts_in(tmp_path / "out", backend=backend):
        said = describe_image(image=picture, question="what is this?")
        again = describe_image(image=picture, question="what is this?")
        told = describe_attribute(image=picture, region=(10, 10, 50, 40), attribute="colour")
    assert said.description == again.description
    assert set(said.description.split()) <= set(WORDS)
    assert "learned_model" in said.flags
    assert "question_not_answered" not in said.flags
    assert set(told.description.split()) <= set(WORDS)


def test_a_model_that_answers_no_question_is_refused(tmp_path: Path, picture: Path) -> None:
    backend = _made(partial(_blip, answers=False), tmp_path / "model")
    with artifacts_in(tmp_path / "out", backend=backend), pytest.raises(ToolError, match="no questions") as caught:
        describe_attribute(image=picture, region=(10, 10, 50, 40), attribute="colour")
    assert caught.value.kind == "backend_unavailable"


def test_all_things_are_named(tmp_path: Path, picture: Path) -> None:
    backend = _made(_rt_detr, tmp_path / "model")
    with artifacts_in(tmp_path / "out", backend=backend):
        found = detect_objects(image=picture, score_min=0.0)
        none = detect_objects(image=picture, score_min=1.0)
    assert found.objects
    assert {each.name for each in found.objects} <= {"cow", "car"}
    assert sum(found.counts.values()) == len(found.objects)
    assert all(0 <= x0 <= x1 <= 90 and 0 <= y0 <= y1 <= 60 for x0, y0, x1, y1 in (each.box for each in found.objects))
    assert [each.score for each in found.objects] == sorted((each.score for each in found.objects), reverse=True)
    assert none.objects == ()
    assert (tmp_path / "out" / found.overlay.name).is_file()


def test_a_formula_is_written_down(tmp_path: Path, picture: Path) -> None:
    backend = _made(_writer, tmp_path / "model")
    with artifacts_in(tmp_path / "out", backend=backend):
        said, again = read_formula(image=picture), read_formula(image=picture)
    assert said.latex == again.latex
    assert said.latex
    assert set(said.latex.split()) <= set(WORDS)


def test_outlines_need_two_models(tmp_path: Path, picture: Path) -> None:
    from vision.test_learned import _grounding_dino, _sam2

    finder, outliner = _made(_grounding_dino, tmp_path / "finder"), _made(_sam2, tmp_path / "outliner")
    both = f"{finder}+{outliner.removeprefix('learned:')}"
    with artifacts_in(tmp_path / "out", backend=finder), pytest.raises(ToolError, match="two models"):
        segment_objects(image=picture, text="apple tree")
    assert {path.parent.name for path in segment_objects.files_for(both)} == {"finder", "outliner"}
    with artifacts_in(tmp_path / "out", backend=both):
        found = segment_objects(image=picture, text="apple tree", score_min=0.0)
        none = segment_objects(image=picture, text="apple tree", score_min=1.0)
    assert found.count == len(found.pixels) == len(found.boxes) == len(found.scores) > 0
    assert max(found.pixels) <= found.total_px <= min(sum(found.pixels), 60 * 90)
    assert (none.count, none.pixels, none.total_px) == (0, (), 0)


def _unet() -> Any:
    import diffusers

    return diffusers.UNet2DConditionModel(
        block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4, sample_size=8, in_channels=4, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16, attention_head_dim=2,
    )  # fmt: skip


def _pipeline(folder: Path) -> None:
    import diffusers
    import torch
    import transformers

    torch.manual_seed(0)
    vae = diffusers.AutoencoderKL(
        block_out_channels=(8,), norm_num_groups=4, in_channels=3, out_channels=3, latent_channels=4,
        down_block_types=("DownEncoderBlock2D",), up_block_types=("UpDecoderBlock2D",),
    )  # fmt: skip
    text = transformers.CLIPTextConfig(
        vocab_size=1000, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=77,
    )  # fmt: skip
    letters = [chr(code) for code in range(97, 123)]
    names = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    tokenizer = transformers.CLIPTokenizer(vocab={name: number for number, name in enumerate(names)}, merges=[])
    tokenizer.model_max_length = 77
    diffusers.StableDiffusionPipeline(
        vae=vae, text_encoder=transformers.CLIPTextModel(text), tokenizer=tokenizer, unet=_unet(),
        scheduler=diffusers.DDIMScheduler(), safety_checker=None, feature_extractor=None, image_encoder=None,
        requires_safety_checker=False,
    ).save_pretrained(folder, safe_serialization=True)  # fmt: skip


@needs_diffusers
def test_pictures_are_made_and_changed(tmp_path: Path, picture: Path) -> None:
    backend = _made(_pipeline, tmp_path / "model")
    weights = find_weights(backend.removeprefix("learned:"))
    assert weights.kind == "diffusers"
    assert any(path.parent.name == "unet" and path.suffix == ".safetensors" for path in weights.files)
    with artifacts_in(tmp_path / "out", backend=backend) as out:
        made, again = generate_image(prompt="a cow"), generate_image(prompt="a cow")
        other = generate_image(prompt="a cow", seed=1)
        changed = stylize_image(image=picture, instruction="make it red")
    assert made.image.sha256 == again.image.sha256 != other.image.sha256
    assert Image.open(out / made.image.name).size == (made.width_px, made.height_px)
    assert (changed.width_px, changed.height_px) == (88, 64)
    assert "made_up" in made.flags
    assert "made_up" in changed.flags
