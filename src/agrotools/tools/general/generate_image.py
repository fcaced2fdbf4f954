"""A picture made from words."""

from typing import Annotated

from pydantic import Field

from agrotools.tools.contract import Agree, tool
from agrotools.tools.general.looking import chosen_backend
from agrotools.tools.general.made_picture import BACKENDS, STEPS, MadePicture, by_endpoint, picture_files
from agrotools.tools.learned import LEARNED
from agrotools.tools.outside import IMAGES
from agrotools.tools.workspace import save_artifact


@tool(category="general", version="1", backends=BACKENDS, backend_files=picture_files)
def generate_image(
    prompt: Annotated[str, Field(min_length=1, max_length=2000, description="what the picture shall show")],
    seed: Annotated[
        int, Agree("presentation"), Field(ge=0, le=2**31 - 1, description="another number, another picture")
    ] = 0,
) -> MadePicture:
    """Make a picture of what a text says.

    Needs a model that makes pictures: learned with a text-to-image pipeline of diffusers, or an OpenAI images endpoint
    (which takes no seed). The picture shows nothing that exists.

    Raises:
        ToolError: ``backend_unavailable``, ``invalid_argument`` (the endpoint refuses the text).
    """
    from PIL import Image

    backend = chosen_backend(
        "making a picture",
        learned="stable-diffusion-v1-5/stable-diffusion-v1-5",
        vlm=False,
        more=f"{IMAGES}gpt-image-1 (key in OPENAI_API_KEY)",
    )
    if backend.startswith(LEARNED):
        from agrotools.vision.learned.drawing import draw_words
        from agrotools.vision.learned.weights import find_weights

        weights = find_weights(backend.removeprefix(LEARNED))
        picture = Image.fromarray(draw_words(prompt, weights, seed=seed, steps=STEPS, side_px=None))
        notes: tuple[str, ...] = (f"made by {weights.name} ({weights.kind}), {STEPS} steps, seed {seed}",)
    else:
        picture, notes = by_endpoint(backend, prompt)
    return MadePicture(
        image=save_artifact("generated.png", "image", picture),
        width_px=picture.width,
        height_px=picture.height,
        notes=notes,
        flags=("made_up",),
    )
