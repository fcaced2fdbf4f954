"""Insects and mites as a field guide would sketch them: schematic drawings, never a stand-in for photographs."""

from agrotools.build.scenes.insects.catalogue import SPECIES, Insect, insect_named

__all__ = ["SPECIES", "Insect", "insect_named"]
