"""The ledger of a run: what was paid is never lost, never counted twice, and readable whatever happened to the file."""

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agrotools.core import BudgetReached, RunStoreError, Usage
from agrotools.models import Completion, Message, ModelSettings
from agrotools.models.endpoint import ScriptedModel
from agrotools.models.metered import Budget, MeteredModel, Spend, SpendLedger, read_spend
from agrotools.models.prices import Price

PRICE = Price(input_usd_per_million=2, output_usd_per_million=8, source="test")


def test_what_was_paid_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "spend.jsonl"
    assert read_spend(path) == Spend()
    with SpendLedger(path) as ledger:
        assert not path.exists()
        ledger.add(100, 20, 0.25)
        ledger.add(7, 0, 0.5)
        assert ledger.spend == Spend(2, 107, 20, 0.75)
    with SpendLedger(path) as again:
        assert again.total_usd == 0.75
        again.add(1, 1, 0.25)
    assert read_spend(path) == Spend(3, 108, 21, 1.0)
    assert path.read_text().splitlines()[0] == '{"input_tokens":100,"output_tokens":20,"usd":0.25}'


def test_a_torn_last_line_is_cut_off_at_any_byte(tmp_path: Path) -> None:
    path = tmp_path / "spend.jsonl"
    with SpendLedger(path) as ledger:
        for _ in range(3):
            ledger.add(100, 20, 0.25)
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        lines = whole[:size].count(b"\n")
        with SpendLedger(path) as again:
            assert again.spend.replies == lines
            again.add(1, 1, 1.0)
        assert read_spend(path) == Spend(
            lines + 1, 100 * lines + 1, 20 * lines + 1, 0.25 * lines + 1.0
        )


_LONG = b"0" * 10_000


@pytest.mark.parametrize(
    "line",
    [b"{}", b"[]", b"null", b'{"input_tokens":1,"output_tokens":1,"usd":-1}', b'{"input_tokens":1,"output_tokens":1}',
     b'{"input_tokens":"1","output_tokens":1,"usd":1}', b"\xff\xfe", b'{"usd":NaN}', _LONG],
)  # fmt: skip
def test_a_line_that_is_no_payment_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "spend.jsonl"
    path.write_bytes(b'{"input_tokens":1,"output_tokens":1,"usd":1}\n' + line + b"\n")
    for read in (SpendLedger, read_spend):
        with pytest.raises(RunStoreError, match="line 2 is not a paid reply"):
            read(path)


def test_a_ledger_that_cannot_be_read_or_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunStoreError, match="is not a file"):
        SpendLedger(tmp_path / "folder")
    with (
        SpendLedger(tmp_path / "nowhere" / "spend.jsonl") as ledger,
        pytest.raises(RunStoreError, match="cannot be written"),
    ):
        ledger.add(1, 1, 1.0)
    assert ledger.total_usd == 1.0
    (tmp_path / "full").symlink_to("/dev/full")  # Reads without end.
    with pytest.raises(RunStoreError, match="is not a file"):
        SpendLedger(tmp_path / "full")


_SPENDING = """
import sys
from pathlib import Path
from agrotools.models.metered import (SpendLedger)
ledger = SpendLedger(Path(sys.argv[1]))
while True:
    ledger.add(100, 20, 0.25)
    print(ledger.spend.replies, flush=True)
"""


@pytest.mark.process
def test_a_kill_loses_nothing_that_was_paid(tmp_path: Path) -> None:
    path = tmp_path / "spend.jsonl"
    chance = random.Random(3)
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", _SPENDING, path],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        for _ in range(chance.randrange(50, 500)):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        printed = process.communicate()[0].split()
        assert read_spend(path).replies >= int(printed[-1] if printed else 0)


async def test_a_run_that_goes_on_keeps_to_the_same_budget(tmp_path: Path) -> None:
    path = tmp_path / "spend.jsonl"
    reply = Completion(text="x", usage=Usage(input_tokens=100, output_tokens=400))
    replied = 0
    for _ in range(3):  # The same command again and again.
        with SpendLedger(path) as ledger:
            model = MeteredModel(ScriptedModel(lambda *_: reply), PRICE, Budget(0.05, ledger))

            async def ask(model: MeteredModel = model) -> None:
                nonlocal replied
                await model.generate(
                    [Message.of("user", "?")], (), ModelSettings(max_output_tokens=500)
                )
                replied += 1

            results = await asyncio.gather(*(ask() for _ in range(30)), return_exceptions=True)
            assert any(isinstance(result, BudgetReached) for result in results)
    assert 10 <= replied == read_spend(path).replies
    assert 0.04 < read_spend(path).usd <= 0.05
