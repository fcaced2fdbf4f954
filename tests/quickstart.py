"""The notebook of ``examples`` with its outputs, and as a page of the documentation.

``python tests/quickstart.py`` runs ``examples/quickstart.ipynb``, keeps the outputs in it, and writes
``docs/quickstart.md``. Run it after a change to the notebook.
"""

import base64
import html
import re
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "examples" / "quickstart.ipynb"
PAGE = ROOT / "docs" / "quickstart.md"
IMAGES = ROOT / "docs" / "images"
_WORDS = re.compile(r"<pre>(.*?)</pre>", re.DOTALL)
_PICTURE = re.compile(r'src="data:image/(png|jpeg);base64,([^"]+)"')


def page_of(cells: list[Any]) -> tuple[str, dict[str, bytes]]:
    """Return the page of a notebook, and its pictures by the names of their files."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```py\n{cell.source}\n```")
        for output in cell.outputs:
            found = _picture(output)
            if found is not None:
                name = f"quickstart-{len(pictures) + 1}.{found[0]}"
                pictures[name] = found[1]
                parts.append(f"![Output of the cell above](images/{name})")
            if text := _text(output):
                parts.append(f"```\n{text}\n```")
    return "\n\n".join(parts) + "\n", pictures


def _picture(output: Any) -> tuple[str, bytes] | None:
    """Return the picture of an output, as the ending of its file and its bytes; None if it has no picture."""
    data = output.get("data", {})
    if "image/jpeg" in data:
        return "jpg", base64.b64decode(data["image/jpeg"])
    shown = _PICTURE.search(data.get("text/html", ""))
    if shown is None:
        return None
    return shown[1].replace("jpeg", "jpg"), base64.b64decode(shown[2])


def _text(output: Any) -> str:
    """Return what an output says in words; a picture alone says nothing."""
    data = output.get("data", {})
    if output.output_type != "execute_result" or "image/jpeg" in data:
        return ""
    in_words = _WORDS.search(data.get("text/html", ""))
    return html.unescape(in_words[1]).rstrip() if in_words else data["text/plain"]


def main() -> None:
    """Run the notebook, and write it and its page."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # the times of cells, which differ from run to run
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.output_type != "stream"]
    nbformat.write(notebook, NOTEBOOK)
    page, pictures = page_of(notebook.cells)
    PAGE.write_text(page, encoding="utf-8")
    for name, content in pictures.items():
        (IMAGES / name).write_bytes(content)


if __name__ == "__main__":
    main()
