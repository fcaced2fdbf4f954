"""Plots of trials seen from the air."""

import numpy as np

from field_sources.snapshot import Prepared, Reader

_FOLDER = "Datasets/breedingplots/output"
_WHOLE = (
    "1f4bca56-16.jpg",
    "b03e98f0-20.jpg",
    "53fc49c4-DJI_20240830113326_0032_D.JPG",
    "1da23de7-17.jpg",
    "088b1c4f-13.jpg",
    "2cea0cad-18.jpg",
    "e51150b2-DJI_20240830113319_0023_D.JPG",
    "787f90b0-31.jpg",
    "f21ca641-DJI_20240830113319_0022_D.JPG",
    "369a4526-DJI_20240830113320_0024_D.JPG",
    "9b07bc2d-DJI_20240830113318_0021_D.JPG",
    "822b0f0e-9.jpg",
    "07e7c0af-2.jpg",
)
"""Pictures of up to 1.7 MB in which no plot that stands is cut by the edge: such plots have no outline."""


def _read_trial_plots(prepared: Prepared) -> None:
    """Plots of ripe cereals that still stand, outlined by people; the pictures of a flight may overlap."""
    for name in _WHOLE:
        stem = name.rpartition(".")[0]
        standing = np.asarray(prepared.snapshot.picture(f"{_FOLDER}/masks/{stem}.png")) > 0
        mask = prepared.store_mask(stem, standing.astype(np.uint8))
        flight = "second flight" if "DJI" in name else "first flight"
        prepared.add(stem, flight, {"image": f"{_FOLDER}/images/{name}"}, mask=mask)


TRIAL_PLOTS = Reader(
    "prabaharravichandran/SegmentationofBreedingPlotfromUAVOrthomosaics",
    "e1dd4f76d1c9e666197ed0e21d054261b2f0fb62",
    _read_trial_plots,
)
