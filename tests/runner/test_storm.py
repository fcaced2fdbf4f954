"""All faults of wire and tools at once: no sample wrong, none missing, none doubled; and the count itself can tell."""

import io
from pathlib import Path

import pytest

from agrotools.core import Mode
from support.storm import Tally, count_outcomes, make_cases, storm

SAMPLES = 100
"""Enough for every fault to occur at least once."""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-storm")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.mark.slow
def test_every_sample_ends_for_the_right_reason(tmp_path: Path):
    mode: Mode = "end-to-end"
    tally = storm(tmp_path, mode, SAMPLES, 7, io.StringIO(), concurrency=None)
    assert tally.why == []
    assert tally.samples == SAMPLES
    assert (tally.connections_left, tally.processes_left) == (0, 0)
    assert tally.clean
    records = tmp_path / f"run-{mode}" / "records.jsonl"
    whole = records.read_bytes().splitlines(keepends=True)

    def recounted(*lines: bytes) -> list[str]:
        records.write_bytes(b"".join(lines))
        tally = Tally()
        count_outcomes(tally, make_cases(SAMPLES, 7, with_tools=True), records.parent, mode)
        return [why.split(": ")[1] for why in tally.why]

    finished = [line for line in whole if b'"termination":"answered"' in line]
    others = [line for line in whole if line not in finished]
    assert "missing" in recounted(*finished[1:], *others)
    assert "doubled" in recounted(*whole, finished[0])
    assert "wrong" in recounted(finished[0].replace(b"value: 1", b"value: 2"), *finished[1:], *others)
    assert "wrong" in recounted(finished[0].replace(b'"answered"', b'"timeout"'), *finished[1:], *others)


@pytest.mark.parametrize("with_tools", [False, True])
def test_equal_seeds_make_equal_storms(with_tools: bool):
    first, again, other = (make_cases(300, seed, with_tools=with_tools) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len({case.fault for case in first}) > 40
