"""A picture changed by words."""

import io
from typing import Annotated

from pydantic import Field

from agrotools.tools.contract import Agree, ImageFile, tool
from agrotools.tools.general.looking import chosen_backend, look_at
from agrotools.tools.general.made_picture import BACKENDS, STEPS, MadePicture, by_endpoint, picture_files
from agrotools.tools.learned import LEARNED
from agrotools.tools.outside import IMAGES
from agrotools.tools.workspace import save_artifact

_SENT_PX = 1536


@tool(category="general", version="1", backends=BACKENDS, backend_files=picture_files)
def stylize_image(
    image: ImageFile,
    instruction: Annotated[
        str, Field(min_length=1, max_length=2000, description="how to change it: turn it into an oil painting...")
    ],
    seed: Annotated[
        int, Agree("presentation"), Field(ge=0, le=2**31 - 1, description="another number, another picture")
    ] = 0,
) -> MadePicture:
    """Change a picture as an instruction says, its style above all.

    Needs a model that changes pictures: learned with a pipeline of diffusers such as InstructPix2Pix, or an OpenAI
    images endpoint (which takes no seed). What the model adds is made up.

    Raises:
        ToolError: ``backend_unavailable``, ``invalid_argument`` (the endpoint refuses the instruction), and as the
            readers.
    """
    from PIL import Image

    backend = chosen_backend(
        "changing a picture",
        learned="timbrooks/instruct-pix2pix",
        vlm=False,
        more=f"{IMAGES}gpt-image-1 (key in OPENAI_API_KEY)",
    )
    looked = look_at(image)
    if backend.startswith(LEARNED):
        from agrotools.vision.learned.drawing import change_picture
        from agrotools.vision.learned.weights import find_weights

        weights = find_weights(backend.removeprefix(LEARNED))
        picture = Image.fromarray(change_picture(looked.pixels, instruction, weights, seed=seed, steps=STEPS))
        notes: tuple[str, ...] = (f"changed by {weights.name} ({weights.kind}), {STEPS} steps, seed {seed}",)
    else:
        sent = Image.fromarray(looked.pixels)
        sent.thumbnail((_SENT_PX, _SENT_PX), Image.Resampling.LANCZOS)
        out = io.BytesIO()
        sent.save(out, "PNG")
        picture, notes = by_endpoint(backend, instruction, (out.getvalue(),))
    return MadePicture(
        image=save_artifact("stylized.png", "image", picture),
        width_px=picture.width,
        height_px=picture.height,
        notes=(*looked.notes, *notes),
        flags=(*looked.flags, "made_up"),
    )
