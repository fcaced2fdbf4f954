"""Corrected variants of the published scorers in :mod:`agrotools.scoring.reference`. Their metric ids end in
``_corrected``; docs/reference-scorers.md sets both side by side."""
