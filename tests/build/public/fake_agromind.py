"""AgroMind as its authors lay it out, small: ``QA_Pairs/FAMILY/XX_a_b_c.json`` and ``images/``.

Traps: paths with and without ``./``, numbers as text and as options that letters name, a picture that two files ask
about (alike, and not alike), a number that is none, types of questions without a picture, a README of another form.
"""

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

PALMS = (23, 60, 41, 12, 77, 35, 52, 8, 66, 30, 48, 19)
FRUITS = (("mango", "mangos"), ("apple", "apples"), ("almond", "almonds"))
COUNTS = (0, 4, 9, 15, 2, 22)


def write_agromind(folder: Path, questions: str = "QA_Pairs") -> Path:
    """Returns ``folder``."""
    qa, images = folder / questions, folder / "images"
    files: dict[str, list[dict[str, Any]]] = {}

    def ask(of: str, path: str, question: str, answer: object, **more: object) -> None:
        item = {"image_path": path, "question": question, "answer": answer, "type_id": 2, **more}
        files.setdefault(of, []).append(item | {"item_id": len(files.get(of, [])) + 1})

    for number, count in enumerate(PALMS):
        path = f"Oil_palm_trees/Result/images/44000_4000_{number}_77.jpg"
        _draw(images / path, count, number)
        if number % 2:
            options = {"A": count + 7, "B": count, "C": 3, "D": 99}
            ask("CO_3_2_7", f"./{path}", "How many oil palm trees are there in the image?", "B", options=options)
        else:
            ask("CO_3_2_4", f"./{path}", "How many oil palm trees are there in the image?", str(count))
    first = "./Oil_palm_trees/Result/images/44000_4000_0_77.jpg"
    ask("CO_3_2_4", first, "How many oil palm trees are there in the image?", str(PALMS[0]))
    ask("CO_3_2_7", first.replace("_0_", "_2_"), "How many oil palm trees are there in the image?", "A",
        options={"A": 40, "B": 2})  # fmt: skip
    for fruit, said in FRUITS:
        for number, count in enumerate(COUNTS):
            path = f"Fruit/acfr-fruit-dataset/images/{fruit}_{number}.png"
            _draw(images / path, count, 50 + number)
            ask("CO_3_2_2", f"./{path}", f"How many {said} are there?", str(count))
    for number, count in enumerate(COUNTS):
        _draw(images / f"corn/images/image_{number:04d}.jpg", count, 80 + number)
        ask(
            "CO_3_2_3", f"./corn/images/image_{number:04d}.jpg", "How many tassels are there in this image?", str(count)
        )
        _draw(images / f"crop/images/05-15_{number}.png", count, 90 + number)
        ask("CO_3_2_6", f"./crop/images/05-15_{number}.png",
            "How many different plant individuals are in the image?", str(count))  # fmt: skip
    ask("CO_3_2_3", "./corn/images/image_0000.jpg", "How many tassels are there in this image?", "many")
    ask("CO_3_2_3", "./../../etc/passwd.jpg", "How many tassels are there in this image?", "3")
    for _ in range(3):
        ask("CO_3_2_1", "./Pest/JPEGImages/IP102000010.jpg", "How many Cicadellidae are in this image?", "1")
        ask("OC_2_1_3", "./Pest/JPEGImages/IP102000015.jpg", "What pests are in this image?", "A", options={"A": "x"})
    ask("PDD_2_2_1", "./Leaf_diseases/images/1.jpg", "Is the leaf healthy?", "A", options={"A": "No, it has Scorch"})
    ask("VPR_4_1_2", "./Oil_palm_trees/Result/images/diameter_blank_1.jpg", "What is the diameter?", "6.4")
    ask("SC_3_1_1", "./Agriculture/images/a.jpg", "Which class is it?", "C")
    families = {"CO": "Scene Understanding", "SC": "Scene Understanding", "OC": "Object Understanding",
                "PDD": "Object Understanding", "VPR": "Scene Reasoning"}  # fmt: skip
    for of, items in files.items():
        place = qa / families[of.split("_")[0]]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{of}.json").write_text(json.dumps(items), encoding="utf-8")
    (qa / "README.json").write_text('{"metadata": {}}')
    return folder


def _draw(path: Path, count: int, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([seed, zlib.crc32(path.name.encode())])
    pixels = np.clip(rng.normal((110, 95, 70), 10, (200, 210, 3)), 0, 255).astype(np.uint8)
    picture = Image.fromarray(pixels)
    brush = ImageDraw.Draw(picture)
    for place in range(count):
        x, y = 11 + 20 * (place % 10), 11 + 20 * (place // 10)
        brush.ellipse((x - 7, y - 7, x + 7, y + 7), fill=(40, 120, 40))
    picture.save(path)
