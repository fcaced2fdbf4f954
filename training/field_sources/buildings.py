"""Places seen from the air on two dates, with new buildings outlined."""

import numpy as np

from field_sources.snapshot import Prepared, Reader

_FOLDER = "samples_LEVIR"


def _read_levir(prepared: Prepared) -> None:
    """Tiles of LEVIR-CD that a repository shows as examples; all that have a mask.

    A name holds the number of a picture and the corner of the tile in it: tiles of one picture are one cluster.
    """
    for path in prepared.snapshot.paths(f"{_FOLDER}/label/", ".png"):
        name = path.rpartition("/")[2]
        files = {"before": f"{_FOLDER}/A/{name}", "after": f"{_FOLDER}/B/{name}"}
        changed = np.asarray(prepared.snapshot.picture(path).convert("L")) > 0
        stem = name.removesuffix(".png")
        picture = "_".join(stem.split("_")[:2])
        mask = prepared.store_mask(stem, changed.astype(np.uint8))
        prepared.add(stem, picture, files, mask=mask)


LEVIR_CD = Reader("wgcban/ChangeFormer", "afd1b7ed640aa265a2c730de958416ae7356a2f9", _read_levir)
