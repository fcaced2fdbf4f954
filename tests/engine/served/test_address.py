"""Addresses of tool servers: what is started, what it may read, and that no secret is kept."""

import sys
from pathlib import Path

import pytest

from agrotools.core import UsageError
from agrotools.served.address import read_address


def test_a_command_gets_the_folder_of_the_sample_and_may_have_a_name(tmp_path: Path):
    address = read_address(f"mine={sys.executable} -m served --root {{files}}")
    assert (address.name, address.kind) == ("mine", "stdio")
    assert address.command(tmp_path) == [sys.executable, "-m", "served", "--root", str(tmp_path)]


@pytest.mark.process
def test_what_a_command_names_is_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script = tmp_path / "server.py"
    script.write_text("")
    monkeypatch.chdir(tmp_path)
    address = read_address(f"env ROOT={{files}} {sys.executable} server.py")
    assert address.words == ("env", "ROOT={files}", sys.executable, str(script))
    assert script in address.readable()
    assert Path(sys.prefix, "lib") in address.readable()


def test_headers_come_from_the_environment_and_are_in_no_record(monkeypatch: pytest.MonkeyPatch):
    address = read_address("https://field.example/mcp Authorization=FIELD_TOKEN")
    with pytest.raises(UsageError, match="FIELD_TOKEN is not set"):
        address.header_values()
    monkeypatch.setenv("FIELD_TOKEN", "Bearer secret")
    assert address.header_values() == {"Authorization": "Bearer secret"}
    assert "secret" not in repr(address)


@pytest.mark.parametrize("value", ["Bearer secret\n", "Bearer secr\u00e9t", "Bearer sec\rret"])
def test_a_value_that_no_header_can_have_is_refused_unseen(
    value: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FIELD_TOKEN", value)
    address = read_address("https://field.example/mcp Authorization=FIELD_TOKEN")
    with pytest.raises(UsageError, match="FIELD_TOKEN holds no value") as refused:
        address.header_values()
    assert "Bearer" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "is_elsewhere"),
    [
        ("http://127.0.0.1:8000/mcp", False),
        ("http://[::1]:8000/mcp", False),
        ("https://field.example/mcp", True),
        (sys.executable, False),
    ],
)
def test_a_server_on_another_machine_is_told_from_one_here(text: str, is_elsewhere: bool):
    assert read_address(text).is_elsewhere is is_elsewhere


def test_a_module_is_run_by_this_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "orchard_tools.py").write_text("")
    monkeypatch.chdir(tmp_path)
    address = read_address("python:orchard_tools:server")
    assert address.words[0] == sys.executable
    assert address.words[-3:] == ("orchard_tools", "server", str(tmp_path / "orchard_tools.py"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no program ''"),
        ("no-such-program-here --stdio", "no program 'no-such-program-here'"),
        ("https://user:password@field.example/mcp", "holds a password"),
        ("https://field.example/mcp secret", "is no header"),
        ("python:no_such_module_here", "no module 'no_such_module_here'"),
        ("'unclosed", "No closing quotation"),
    ],
)
def test_an_address_that_cannot_be_used_says_why(text: str, message: str):
    with pytest.raises(UsageError, match=message) as refused:
        read_address(text)
    assert refused.value.hint
    assert "password@" not in str(refused.value)
