"""Benchmarks from a user's own photographs and a table of ground truth.

:func:`~.table.match_rows` matches the rows of the table to photographs, :func:`~.proposal.propose_plan` proposes a
:class:`~.plan.Plan`, the user answers its open questions, and :func:`~.building.build_from_photos` writes the
benchmark. Every row that is not used is reported with its number, the reason and a remedy.
"""
