"""The system call filters, run by a small interpreter of classic BPF: also that of the machine that we are not on."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.sandbox.runners import (
    AUDIT_ARCHITECTURES,
    LAST_KNOWN,
    SYSTEM_CALLS,
    Stage,
    assemble,
    number,
)

ARCHITECTURES = tuple(AUDIT_ARCHITECTURES)
STAGES: tuple[Stage, ...] = ("start", "code", "code_reading_host")
ALLOW, KILL, EPERM, ENOSYS, ENOTTY = 0x7FFF0000, 0x80000000, 0x50001, 0x50026, 0x50019


def verdict(program: bytes, call: int, *arguments: int, architecture: int) -> int:
    """What the kernel would do; fails on an instruction or jump that it would refuse."""
    data = struct.pack("<IIQ6Q", call, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    lines = [struct.unpack_from("<HBBI", program, 8 * n) for n in range(len(program) // 8)]
    at, value = 0, 0
    while True:
        code, if_true, if_false, k = lines[at]
        at += 1
        if code == 0x06:
            return k
        if code == 0x20:
            assert k % 4 == 0
            (value,) = struct.unpack_from("<I", data, k)
        else:
            taken = {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[code]
            at += if_true if taken else if_false


def judge(stage: Stage, architecture: str, name: str, *arguments: int) -> int:
    call = number(name, architecture)
    assert call is not None
    program = assemble(stage, architecture)
    return verdict(program, call, *arguments, architecture=AUDIT_ARCHITECTURES[architecture])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("stage", STAGES)
def test_every_call_of_the_list_is_refused(stage: Stage, architecture: str) -> None:
    levels = ("always", "code", "host")[: STAGES.index(stage) + 1]
    refused = {name for name, call in SYSTEM_CALLS.items() if call.refused in levels}
    assert len(refused) >= 120
    assert {"socket", "ptrace", "chmod"} <= refused
    for name in refused:
        if number(name, architecture) is not None:
            assert judge(stage, architecture, name) == EPERM, name
    assert judge(stage, architecture, "clone3") == ENOSYS
    assert judge(stage, architecture, "openat2") == ENOSYS


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_worker_can_be_set_up(architecture: str) -> None:
    thread = 0x3D0F00
    assert judge("start", architecture, "clone", thread) == ALLOW
    assert judge("start", architecture, "clone", 17) == EPERM
    for name in (
        "execve",
        "seccomp",
        "prctl",
        "ioctl",
        "fcntl",
        "prlimit64",
        "landlock_restrict_self",
        "umount2",
    ):
        assert judge("start", architecture, name, 22, 2) == ALLOW, name


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_arguments_are_looked_at(architecture: str) -> None:
    stage: Stage = "code_reading_host"
    assert judge(stage, architecture, "clone", 0x3D0F00) == EPERM
    assert judge(stage, architecture, "ioctl", 1, 0x5401) == ALLOW
    assert judge(stage, architecture, "ioctl", 1, 0x5412) == ENOTTY
    assert judge(stage, architecture, "ioctl", 1, 0x5412 | 1 << 40) == ENOTTY
    assert judge(stage, architecture, "fcntl", 1, 1) == ALLOW
    assert judge(stage, architecture, "fcntl", 1, 8, 1) == EPERM
    assert judge(stage, architecture, "prctl", 15) == ALLOW
    assert judge(stage, architecture, "prctl", 1) == EPERM
    assert judge(stage, architecture, "prlimit64", 0, 7, 0, 0x7FFF00000000) == ALLOW
    assert judge(stage, architecture, "prlimit64", 0, 7, 1 << 32) == EPERM
    assert judge(stage, architecture, "prlimit64", 0, 7, 1) == EPERM
    assert judge(stage, architecture, "openat", 0, 0, 0o2000000) == ALLOW
    for flags in (1, 2, 3, 0o100, 0o1000, 0o2000, 0o20000000, 0o2000000 | 0o100):
        assert judge(stage, architecture, "openat", 0, 0, flags) == EPERM, oct(flags)
        assert judge("code", architecture, "openat", 0, 0, flags) == ALLOW
    if number("open", architecture) is not None:
        assert judge(stage, architecture, "open", 0, 0) == ALLOW
        assert judge(stage, architecture, "open", 0, 0o102) == EPERM


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@given(call=st.integers(0, 2**32 - 1), other=st.integers(0, 2**32 - 1))
def test_whatever_is_called(architecture: str, call: int, other: int) -> None:
    """Every path through the filter ends; what is newer than it, or of another kind of processor, is never allowed."""
    own = AUDIT_ARCHITECTURES[architecture]
    for stage in STAGES:
        program = assemble(stage, architecture)
        said = verdict(program, call, architecture=own)
        assert said in (ALLOW, EPERM, ENOSYS, ENOTTY, KILL)
        if call > LAST_KNOWN:
            assert said in (ENOSYS, KILL)
        if other != own:
            assert verdict(program, call, architecture=other) == KILL


def test_the_calls_that_python_needs_are_not_in_the_list() -> None:
    for numbers in (
        {
            "x86_64": (
                0,
                1,
                3,
                5,
                8,
                9,
                10,
                11,
                12,
                13,
                14,
                39,
                60,
                96,
                186,
                202,
                228,
                231,
                257,
                262,
                318,
            )
        },
        {"aarch64": (56, 57, 62, 63, 64, 80, 98, 113, 134, 135, 172, 178, 214, 215, 222, 226, 278)},
    ):
        for architecture, calls in numbers.items():
            program = assemble("code", architecture)
            for call in calls:
                assert (
                    verdict(program, call, architecture=AUDIT_ARCHITECTURES[architecture]) == ALLOW
                ), call
