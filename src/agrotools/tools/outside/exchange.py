"""One request to a service with a budget of attempts and of time; what goes wrong is told without the key."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from agrotools.core import InfrastructureError, ToolError, UsageError
from agrotools.models.server_said import one_line, retry_after
from agrotools.tools.outside.addresses import ALLOW, PrivateAddress

_LARGEST_REPLY = 64 * 2**20


@dataclass(frozen=True)
class Patience:
    """How long one attempt may take, how many there are, and how long waiting between them may be in all."""

    timeout_s: float = 20.0
    attempts: int = 3
    first_wait_s: float = 0.5
    waits_s: float = 30.0


DEFAULT_PATIENCE = Patience()


async def exchange(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    *,
    service: str,
    secret: str = "",
    patience: Patience = DEFAULT_PATIENCE,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
    params: Mapping[str, str] | None = None,
    form: Any = None,
    key_variable: str = "",
) -> bytes:
    """The body of a good reply. 408, 429, 5xx and broken connections are tried again; ``Retry-After`` is obeyed.

    Args:
        form: makes a new form for each attempt, called without arguments.

    Raises:
        UsageError: the service refuses the key or the address, or the address is private.
        InfrastructureError: no reply within the budget.
        ToolError: ``invalid_argument``: the service refuses this request; ``limit``: its reply has no end.
    """
    attempt, waited_s = 0, 0.0
    while True:
        attempt += 1
        asked: float | None = None
        try:
            async with session.request(
                method,
                url,
                headers=headers,
                params=params,
                timeout=aiohttp.ClientTimeout(total=patience.timeout_s),
                allow_redirects=False,  # it would carry the key elsewhere
                data=form() if form else None,
                json=json,
            ) as response:
                body = await _read(response, service)
                if 200 <= response.status < 300:
                    return body
                said = one_line(_message_in(body), secret)
                fault = f"HTTP {response.status}" + (f": {said}" if said else "")
                _raise_for(response.status, fault, service, key_variable)
                asked = retry_after(response.headers)
        except TimeoutError:
            fault = f"no reply within {patience.timeout_s:g} s"
        except (aiohttp.ClientError, OSError) as error:
            if _is_private(error):
                raise UsageError(f"the address of {service} leads into a private network", hint=ALLOW) from None
            fault = one_line(f"{type(error).__name__}: {error}", secret)
        wait_s = patience.first_wait_s * 2 ** (attempt - 1) * random.uniform(0.5, 1.0) if asked is None else asked
        if attempt >= patience.attempts or waited_s + wait_s > patience.waits_s:
            waits = f"; it asks to wait {asked:.0f} s" if asked else ""
            raise InfrastructureError(
                f"no reply from {service} after {attempt} attempts: {fault}{waits}",
                hint="is it up, and its address right? Ask again later, or choose another back-end",
            )
        waited_s += wait_s
        await asyncio.sleep(wait_s)


async def _read(response: aiohttp.ClientResponse, service: str) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > _LARGEST_REPLY:
            raise ToolError("limit", f"the reply of {service} is longer than {_LARGEST_REPLY >> 20} MiB")
    return b"".join(pieces)


def _raise_for(status: int, fault: str, service: str, key_variable: str) -> None:
    """Raise what no second attempt mends."""
    if status in (401, 403):
        hint = f"set the environment variable {key_variable} to a valid key" if key_variable else None
        raise UsageError(f"{service} refuses the request: {fault}", hint=hint or "does it ask for a key?")
    if status in (404, 405) or 300 <= status < 400:
        raise UsageError(f"{service} is not at that address: {fault}", hint="check the address, redirects included")
    if status < 500 and status not in (408, 409, 425, 429):
        raise ToolError("invalid_argument", f"{service} refuses this request: {fault}", hint="another wording may do")


def _is_private(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, PrivateAddress) or isinstance(getattr(error, "os_error", None), PrivateAddress):
            return True
        error = error.__cause__ or error.__context__
    return False


def _message_in(body: bytes) -> str:
    """What a server says is wrong, out of the forms that are usual."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body[:2000].decode(errors="replace").strip()
        return "" if text.startswith("<") else text
    if isinstance(value, dict):
        error = value.get("error") or value.get("message") or value.get("detail")
        return str(error.get("message", "") if isinstance(error, dict) else error or "")
    return ""
