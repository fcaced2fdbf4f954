"""A corpus of text, indexed once on disk and searched."""

import tempfile
from pathlib import Path

from agrotools.calling import build_index

TEXTS = {
    "rice.txt": "Sheath blight of rice is caused by Rhizoctonia solani. It is favoured by dense stands and nitrogen.",
    "wheat.txt": "Stripe rust of wheat forms yellow stripes of pustules on the leaves in cool, moist weather.",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for name, text in TEXTS.items():
            (corpus / name).write_text(text, encoding="utf-8")
        index = build_index(corpus, Path(folder) / "index")
        for passage in index.search("yellow stripes on wheat", k=1):
            print(f"{passage.source} ({passage.score:.2f}): {passage.text}")


if __name__ == "__main__":
    main()
