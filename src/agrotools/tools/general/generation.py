"""Pictures made from words, and pictures changed by words."""

import base64
import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from agrotools.core import Artifact, ToolError
from agrotools.tools.contract import Agree, ImageFile, ToolResult, tool
from agrotools.tools.general.images import chosen_backend, open_image
from agrotools.tools.learned import LEARNED, weight_files
from agrotools.tools.services import IMAGES, ServiceRequest, request_service
from agrotools.tools.workspace import save_artifact

if TYPE_CHECKING:
    from PIL.Image import Image


BACKENDS = ("offline", LEARNED, IMAGES)
STEPS = 25
_MOST_PX = 40_000_000


class GeneratedImage(ToolResult):
    image: Artifact
    """the picture"""
    width_px: int
    height_px: int


def picture_files(backend: str) -> tuple[Path, ...]:
    """The files of the model that a back-end names; an endpoint has none here.

    Raises:
        ToolError: ``backend_unavailable``, see :func:`agrotools.tools.learned.weight_files`.
    """
    return weight_files(backend) if backend.startswith(LEARNED) else ()


def by_endpoint(backend: str, prompt: str, pictures: tuple[bytes, ...] = ()) -> tuple["Image", tuple[str, ...]]:
    """The picture that an images endpoint makes, and notes.

    Raises:
        ToolError: as :func:`agrotools.tools.services.request_service`; ``tool_failed``: the reply is no image.
    """
    from PIL import Image

    model = backend.removeprefix(IMAGES)
    reply = request_service(ServiceRequest(backend, {"prompt": prompt}, pictures))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(base64.b64decode(reply["picture"])), formats=["PNG", "JPEG", "WEBP"])
            if picture.width * picture.height > _MOST_PX:
                raise ValueError("too large")
            picture = picture.convert("RGB")
    except Exception as error:  # decoders raise whatever a damaged picture leads them to
        raise ToolError("tool_failed", f"what {model} made is no picture that can be read", hint="ask again") from error
    revised = reply.get("revised_prompt")
    return picture, (f"made by {model}", *((f"the endpoint reworded it: {revised}",) if revised else ()))


@tool(category="general", version="1", backends=BACKENDS, backend_files=picture_files)
def generate_image(
    prompt: Annotated[str, Field(min_length=1, max_length=2000, description="what the picture shall show")],
    seed: Annotated[
        int, Agree("presentation"), Field(ge=0, le=2**31 - 1, description="another number, another picture")
    ] = 0,
) -> GeneratedImage:
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
        from agrotools.vision.learned.generation import draw_words
        from agrotools.vision.learned.weights import find_weights

        weights = find_weights(backend.removeprefix(LEARNED))
        picture = Image.fromarray(draw_words(prompt, weights, seed=seed, steps=STEPS, side_px=None))
        notes: tuple[str, ...] = (f"made by {weights.name} ({weights.kind}), {STEPS} steps, seed {seed}",)
    else:
        picture, notes = by_endpoint(backend, prompt)
    return GeneratedImage(
        image=save_artifact("generated.png", "image", picture),
        width_px=picture.width,
        height_px=picture.height,
        notes=notes,
        flags=("made_up",),
    )


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
) -> GeneratedImage:
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
    looked = open_image(image)
    if backend.startswith(LEARNED):
        from agrotools.vision.learned.generation import change_picture
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
    return GeneratedImage(
        image=save_artifact("stylized.png", "image", picture),
        width_px=picture.width,
        height_px=picture.height,
        notes=(*looked.notes, *notes),
        flags=(*looked.flags, "made_up"),
    )
