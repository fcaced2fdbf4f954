"""Exchanges with an endpoint: forms of replies, connections that are kept, and ends of connections."""

import asyncio
import gzip
import shutil
import zlib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agrotools.core import UsageError
from agrotools.models import WireSettings
from agrotools.models.transport import NoResponse, Response, TimedOut, Transport
from engine.models.test_wire_faults import GOOD, raw_server, reply, says
from support.fault_server import self_signed

pytestmark = pytest.mark.process

WIRE = WireSettings(timeout_s=30.0, stall_s=30.0)
HASTY = WireSettings(timeout_s=1.0, stall_s=0.3)


async def post(base_url: str, body: bytes = b"{}", wire: WireSettings = WIRE) -> Response:
    transport = Transport(
        f"{base_url}/chat/completions", {"Content-Type": "application/json"}, wire
    )
    try:
        return await transport.post(body)
    finally:
        await transport.close()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HALF = len(GOOD) // 2
FORMS = {
    "length": reply(),
    "chunks": CHUNKED
    + b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (HALF, GOOD[:HALF], len(GOOD) - HALF, GOOD[HALF:]),
    "interim reply": b"HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n" + reply(),
    "gzip": reply(gzip.compress(GOOD), Content_Encoding="gzip"),
    "deflate": reply(zlib.compress(GOOD), Content_Encoding="deflate"),
    "raw deflate": reply(zlib.compress(GOOD, wbits=-15), Content_Encoding="deflate"),
    "two replies": reply() + reply(b"{}", 500, X_Early="1"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("piece", [1, 7, 10_000])
async def test_a_reply_is_read_in_every_form_and_in_pieces_of_any_size(
    form: str, piece: int
) -> None:
    async def answer(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _number: int
    ) -> None:
        whole = FORMS[form]
        for start in range(0, len(whole), piece):
            writer.write(whole[start : start + piece])
            if piece < 10:
                await asyncio.sleep(0)

    async with raw_server(answer) as server:
        response = await post(server.base_url)
    assert (response.status, response.body) == (200, GOOD)
    assert "X-Early" not in response.headers


@pytest.mark.parametrize("read_while_idle", [True, False])
async def test_a_reply_that_comes_unasked_is_nobodys(read_while_idle: bool) -> None:
    connections: list[asyncio.StreamWriter] = []

    async def answer(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        connections.append(writer)
        writer.write(reply(b"reply %d" % number))

    async with raw_server(answer) as server:
        transport = Transport(f"{server.base_url}/chat/completions", {}, WIRE)
        first = await transport.post(b"{}")
        connections[0].write(reply(b"unasked"))
        if read_while_idle:
            await asyncio.sleep(0.05)
        second = await transport.post(b"{}")
        third = await transport.post(b"{}")
        await transport.close()
    assert [first.body, second.body, third.body] == [b"reply 1", b"reply 2", b"reply 3"]
    assert connections[0] is not connections[1]
    assert connections[1] is connections[2]


BROKEN = {
    "not HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "wrong gzip": reply(b"{}", Content_Encoding="gzip"),
    "wrong chunk": CHUNKED + b"zz\r\n",
}


@pytest.mark.parametrize("fault", BROKEN)
async def test_broken_replies_are_no_responses(fault: str) -> None:
    async with raw_server(says(BROKEN[fault])) as server:
        with pytest.raises(NoResponse) as caught:
            await post(server.base_url)
    assert caught.value.passing
    assert not caught.value.unreachable


async def test_a_server_that_hangs_up_in_the_middle_and_one_that_is_not_there() -> None:
    async def answer(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _number: int
    ) -> None:
        writer.write(reply()[:-5])
        writer.close()

    async with raw_server(answer) as server:
        with pytest.raises(NoResponse, match="not completed"):
            await post(server.base_url)
    with pytest.raises(NoResponse, match=r"Cannot connect to host 127\.0\.0\.1") as caught:
        await post(server.base_url)
    assert caught.value.unreachable


async def test_silence_before_a_reply_is_a_time_out_and_afterwards_a_stall() -> None:
    async def silent(
        reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, _number: int
    ) -> None:
        await reader.read()

    async with raw_server(silent) as server:
        with pytest.raises(TimedOut, match="within 1 s"):
            await post(server.base_url, wire=HASTY)
    async with raw_server(says(reply()[:-5])) as server:
        with pytest.raises(NoResponse, match="stalled"):
            await post(server.base_url, wire=HASTY)


async def test_a_reply_or_headers_without_end_are_given_up() -> None:
    async def endless(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" if number == 1 else CHUNKED)
        while True:
            writer.write(
                b"X-Filler: 1\r\n" * 5000
                if number == 1
                else b"10000\r\n" + b" " * 0x10000 + b"\r\n"
            )
            await writer.drain()

    async with raw_server(endless) as server:
        transport = Transport(f"{server.base_url}/chat/completions", {}, WIRE)
        with pytest.raises(NoResponse):
            await transport.post(b"{}")
        with pytest.raises(NoResponse, match="longer than 16 MiB"):
            await transport.post(b"{}")
        await transport.close()


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
@pytest.mark.parametrize("scheme", ["http://", ""])
async def test_requests_go_through_the_proxy_of_the_environment(
    variable: str, scheme: str, monkeypatch
) -> None:
    async with raw_server(says(reply())) as proxy:
        monkeypatch.setenv(variable, f"{scheme}{urlsplit(proxy.base_url).netloc}")
        assert (await post("http://models.invalid/v1")).body == GOOD
        monkeypatch.setenv("NO_PROXY", "models.invalid")
        with pytest.raises(NoResponse):
            await post("http://models.invalid/v1")
    assert proxy.posts == 1


async def test_a_socks_proxy_is_refused_in_words_and_never_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://user:secret@10.0.0.1:1080")
    with pytest.raises(UsageError, match="a socks5 proxy, and only HTTP proxies") as caught:
        await post("https://models.invalid/v1")
    assert "secret" not in str(caught.value)
    async with raw_server(says(reply())) as server:  # this machine is reached without it
        assert (await post(server.base_url)).body == GOOD


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")
async def test_certificates_of_requests_ca_bundle_are_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw_server(says(reply()), tls=self_signed(tmp_path)) as server:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "certificate.pem"))
        assert (await post(server.base_url)).body == GOOD
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "missing.pem"))
        with pytest.raises(UsageError, match="REQUESTS_CA_BUNDLE names no certificates"):
            await post(server.base_url)
