"""Hostile code in every runner that this machine has: none of it gets out, and what comes out of it is harmless."""

from collections.abc import Iterator

import pytest
from attacks import Attack, Host, breach, run_attack
from hostile_code import ATTACKS, ATTACKS_ON_THE_CHANNEL


@pytest.fixture
def host() -> Iterator[Host]:
    with Host() as host:
        yield host


@pytest.mark.parametrize(
    "attack", [*ATTACKS, *ATTACKS_ON_THE_CHANNEL], ids=lambda attack: attack.name
)
def test_hostile_code_reaches_nothing(attack: Attack, runner: str, host: Host) -> None:
    result = run_attack(attack, runner, host)
    assert breach(attack, result, host) is None
    assert "\n" not in result.message
    assert len(result.message) < 1000


def test_the_attacks_would_succeed_without_isolation(host: Host) -> None:
    """A table of attacks that cannot succeed anywhere would show nothing."""

    by_name = {attack.name: attack for attack in ATTACKS}
    names = (
        "read files",
        "read the answers of this package",
        "connect",
        "write outside",
        "unix sockets by name",
    )
    names += (
        "signals to the parent",
        "thread bomb",
        "change files without opening them",
        "memory beside the limit",
    )
    for name in names:
        result = run_attack(by_name[name], "none", host)
        assert result.value is not None, (name, result.message)
        assert "reached" in result.value, name
