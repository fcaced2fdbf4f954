"""The tools of GTA-2: which it has, and which of them are here."""

from pathlib import Path
from typing import Any, NamedTuple, cast

from agrotools.benchmarks._dialogs.declared import TOOLMETA_FILE
from agrotools.benchmarks._dialogs.findings import shown
from agrotools.benchmarks._dialogs.json_files import read_json
from agrotools.core import BenchmarkError
from agrotools.tools import TOOLS

GTA2_TOOLS: tuple[str, ...] = tuple(
    """
    Calculator GoogleSearch Plot Solver OCR ImageDescription CountGivenObject MathOCR DrawBox AddText TextToImage
    ImageStylization RegionAttributeDescription CsvFileGenerator DocxFileGenerator PdfFileGenerator PptxFileGenerator
    XlsxFileGenerator ReadCSV ReadDOCX ReadPDF ReadPPTX ReadXLSX ImageQualityTest AudioClipTool NoiseReduction
    PitchShifting SoundCharacteristicExtraction Prover VideoClip VideoDescription VideoObjectDetection VideoOCR
    TextToVideoTool AddTextVideoTool SpeechToText HtmlFileGenerator
    """.split()
)
"""Names in agentlego/benchmark_toollist_v2.txt of open-compass/GTA, commit 8dd011f."""
_NAME_KEYS = ("name", "tool_name", "id")


class Offered(NamedTuple):
    """The tools that every task is offered, those that are not here, and what to say of it."""

    here: tuple[str, ...]
    missing: tuple[str, ...]
    remark: str


def offered_tools(folder: Path) -> Offered:
    """The tools of ``toolmeta.json`` in ``folder`` (a list of objects or of names, or an object by name); those that
    GTA-2 names where there is no such file.

    Raises:
        BenchmarkError: the file cannot be read, or names no tool.
    """
    path = folder / TOOLMETA_FILE
    source = TOOLMETA_FILE if path.is_file() else f"GTA-2 (there is no {TOOLMETA_FILE})"
    names = _names(read_json(path), path) if path.is_file() else list(GTA2_TOOLS)
    here = tuple(name for name in names if name in TOOLS)
    missing = tuple(name for name in names if name not in TOOLS)
    remark = f"{len(here)} of the {len(names)} tools of {source} are here"
    if missing:
        remark += f"; tasks are not offered {', '.join(shown(name).strip(chr(39)) for name in missing)}"
    return Offered(here, missing, remark)


def _names(content: Any, path: Path) -> list[str]:
    given = cast("list[Any]", content) if isinstance(content, list) else []
    if isinstance(content, dict):
        given = [*cast("dict[str, Any]", content)]
    names: list[str] = []
    for each in given:
        name = each
        if isinstance(each, dict):
            tool = cast("dict[str, Any]", each)
            name = next((tool[key] for key in _NAME_KEYS if tool.get(key)), None)
        if not isinstance(name, str) or not name.strip():
            raise BenchmarkError(f"{path} holds a tool without a name: {shown(each)}", hint="download it again")
        names.append(name.strip())
    if not names:
        raise BenchmarkError(f"{path} names no tool", hint="download it again, or remove it: the names are known here")
    return list(dict.fromkeys(names))
