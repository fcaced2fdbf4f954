"""A formula in a picture, as LaTeX."""

from agrotools.tools.contract import ImageFile, Region, ToolResult, tool
from agrotools.tools.general.looking import chosen_backend, look_at
from agrotools.tools.learned import LEARNED, weight_files, write_down_learned
from agrotools.tools.vlm import VLM


class ReadFormula(ToolResult):
    latex: str
    """the formula as LaTeX; several formulas on lines of their own"""


@tool(category="general", version="1", backends=("offline", LEARNED, VLM), backend_files=weight_files)
def read_formula(image: ImageFile, region: Region | None = None) -> ReadFormula:
    """Read a mathematical formula in a picture and write it as LaTeX.

    Needs a large model: vlm, or learned with a model that writes down pictures (Nougat and others of its build).

    Raises:
        ToolError: ``backend_unavailable``, ``region_empty``, and as the readers.
    """
    backend = chosen_backend("reading a formula", learned="facebook/nougat-small")
    looked = look_at(image, region)
    if backend == VLM:
        from agrotools.tools.vlm.general import read_latex

        said = read_latex(looked.pixels, looked.box)
    else:
        said = write_down_learned(backend, looked.pixels, looked.box)
    flags = (*looked.flags, *said.flags, *(() if said.text else ("no_text_found",)))
    return ReadFormula(latex=said.text, notes=(*looked.notes, *said.notes), flags=flags)
