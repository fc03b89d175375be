"""Which requests are let in: from this page or from programs, not too large and not too many.

Any page that a browser shows can send requests to the loopback address, and a name of its own
can be made to point there. Requests therefore have to name a host that the studio was started
for, and those that say where they come from must come from the studio's own page. Beyond the
loopback address a token is needed too: the page gets it once, from its address, and keeps it as a
cookie that only this studio is sent.
"""

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address
from time import monotonic
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["COOKIE", "Gate", "Guard", "is_loopback"]

COOKIE = "tampl_studio"

_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_CLIENTS = 1024


@dataclass(frozen=True)
class Gate:
    """What a guard lets in.

    Attributes:
        hosts: Names that requests may call the studio by.
        digits: Whether they may also call it by any address in digits.
        token: What has to be known; None where nothing has to be.
        largest: Bytes of a request's body.
        per_second: Requests of one address in a second, on average.
        burst: Requests of one address at once.
        body_s: Seconds in which a body has to have arrived.
    """

    hosts: Collection[str] = ("127.0.0.1", "localhost", "::1")
    digits: bool = False
    token: str | None = None
    largest: int = 4 << 20
    per_second: float = 200.0
    burst: float = 600.0
    body_s: float = 20.0


class _Refusal(Exception):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Guard:
    """Middleware that refuses what a gate does not let in, and says why in one line.

    Arguments:
        app: The application behind it.
        gate: What is let in.
    """

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self.app = app
        self.gate = gate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no websockets
            return
        guarded = _add_headers(send)
        try:
            headers = Headers(scope=scope)
            self._check_origin(headers)
            self._check_rate(scope)
            if self._is_entrance(scope):
                await self._enter(guarded)
                return
            self._check_token(headers)
            body = await self._read(headers, receive)
        except _Refusal as refusal:
            await _answer(guarded, refusal)
            return
        await self.app(scope, _replay(body, receive), guarded)

    def _check_origin(self, headers: Headers) -> None:
        host = headers.get("host", "")
        name = _host_name(host)
        if name not in self.gate.hosts and not (self.gate.digits and _is_address(name)):
            raise _Refusal(403, "the studio has another name; use the address that was printed")
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise _Refusal(403, "requests of other pages are refused")
        # A link from elsewhere may open the page; it may not reach what is behind it.
        site = headers.get("sec-fetch-site", "none")
        if site not in ("same-origin", "none") and headers.get("sec-fetch-mode") != "navigate":
            raise _Refusal(403, "requests of other pages are refused")

    def _check_rate(self, scope: Scope) -> None:
        client = (scope.get("client") or ("unknown", 0))[0]
        now = monotonic()
        left, before = self._buckets.pop(client, (self.gate.burst, now))
        left = min(self.gate.burst, left + (now - before) * self.gate.per_second)
        self._buckets[client] = (max(left - 1, 0), now)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        if left < 1:
            raise _Refusal(429, "too many requests; wait a second")

    def _is_entrance(self, scope: Scope) -> bool:
        if self.gate.token is None or scope["path"] != "/":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return _is_same(given, self.gate.token)

    async def _enter(self, send: Send) -> None:
        cookie = f"{COOKIE}={self.gate.token}; HttpOnly; SameSite=Strict; Path=/"
        # Without the token in the address, it is not shown to who looks at the screen.
        headers = [(b"location", b"/"), (b"set-cookie", cookie.encode())]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def _check_token(self, headers: Headers) -> None:
        if self.gate.token is None:
            return
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = [bearer.strip()] if scheme.lower() == "bearer" else []
        for part in headers.get("cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            given += [value] if name == COOKIE else []
        if not any(_is_same(value, self.gate.token) for value in given):
            raise _Refusal(401, "the token is missing or wrong; open the address that was printed")

    async def _read(self, headers: Headers, receive: Receive) -> bytes:
        """The whole body, which is small: what is behind never waits for a slow sender."""
        too_large = _Refusal(413, f"a request may have {self.gate.largest} bytes at most")
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self.gate.largest:
            raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.gate.body_s):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        break
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.gate.largest:
                        raise too_large
                    if not message.get("more_body", False):
                        break
        except TimeoutError as error:
            raise _Refusal(408, "the request did not arrive in time") from error
        return b"".join(parts)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _host_name(host: str) -> str:
    """The name in a Host header, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())


def _add_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return guarded


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read, then whatever comes, which is that the client has gone."""
    read = False

    async def replayed() -> Message:
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


async def _answer(send: Send, refusal: _Refusal) -> None:
    body = json.dumps({"detail": refusal.detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if refusal.status == 429:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
