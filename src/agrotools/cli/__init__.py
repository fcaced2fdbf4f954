"""Commands of ``agrotools``, a file for each or for a few that belong together.

Typed arguments come in; lines on standard output, JSON with ``--json``, and an exit code go out. A command computes
nothing itself: it calls the rooms below and prints what they return. It imports them in its function, so that help and
completion are fast. Words about options stand in ``options.toml`` and ``eval_options.toml``.
"""
