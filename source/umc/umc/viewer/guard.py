# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What the viewer accepts from the network: few pages, of its own address, and values that its controls offer.

There is no login: whoever reaches the port can press the buttons. viser itself takes connections of any web page and
sets a control to whatever a message says.
"""

from __future__ import annotations

import asyncio
import functools
import http
import ipaddress
import math
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from umc.utils.errors import UmcError, shown

MAX_TEXT = 1000
"""Longest text that a control takes."""

MAX_PAGES = 16
"""Most connections at once; each gets the whole scene."""

MAX_RATE = 500.0
"""Most messages of a page in a second, after as many at once; the others wait in the page."""

MAX_MESSAGE_BYTES = 2**16
"""Longest message of a page [byte]; without uploads, none comes near."""

LINE_EVERY_S = 1.0
"""Shortest time between two lines about ignored messages [s]."""


def check_host(host: str, port: int) -> None:
    """Raise UmcError unless this machine can listen at an address; viser would try one port after the other."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind((address[0], 0, *address[2:]))
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that is no domain
        reason = getattr(error, "strerror", None) or error
        raise UmcError(
            f"--host {shown(host)} is no address of this machine ({reason}); give localhost, 0.0.0.0 or one of its own"
        ) from error


def is_own_page(host: str | None, origin: str | None, names: frozenset[str]) -> bool:
    """Return whether a request comes from the viewer's page.

    The header Host has to be an address in digits or one of ``names``: a page elsewhere whose name is made to lead here
    keeps its name. Origin, which browsers send with a websocket, has to be the same host and port.
    """
    if host is None:
        return False
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return False
        return name in names or bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def own_names(host: str) -> frozenset[str]:
    """Return the names under which a page opens a viewer that listens at ``host``."""
    return frozenset({"localhost", host.lower(), socket.gethostname().lower()})


def guard_requests(names: frozenset[str]) -> None:
    """Let servers of websockets, which viser uses, refuse requests that do not come from their own page.

    viser has no setting for it: it calls ``websockets.asyncio.server.serve`` in a thread of its own.
    """
    from websockets.asyncio import server
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    original = getattr(server.serve, "__wrapped__", server.serve)

    @functools.wraps(original)
    def serve(handler: Any, *arguments: Any, process_request: Any = None, **options: Any) -> Any:
        pages: set[Any] = set()

        async def handle(connection: Any) -> None:
            if len(pages) >= MAX_PAGES:
                NOTES.note(f"{MAX_PAGES} pages are connected", "connection")
                await connection.close(1013, "too many pages")  # try again later
                return
            pages.add(connection)
            connection.recv = paced(connection.recv)
            try:
                await handler(connection)
            except Exception as error:  # noqa: BLE001  (what viser raises over a message that it cannot decode)
                NOTES.note(f"its connection is closed ({type(error).__name__})")
            finally:
                pages.discard(connection)

        def process(connection: Any, request: Any) -> Any:
            hosts, origins = (request.headers.get_all(name) for name in ("Host", "Origin"))
            single = len(hosts) == 1 and len(origins) <= 1
            if not single or not is_own_page(hosts[0], origins[0] if origins else None, names):
                return Response(http.HTTPStatus.FORBIDDEN, "Forbidden", Headers())
            return None if process_request is None else process_request(connection, request)

        options["max_size"] = MAX_MESSAGE_BYTES
        return original(handle, *arguments, process_request=process, **options)

    server.serve = serve


def paced(receive: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    """Return a function that receives at most :data:`MAX_RATE` messages a second."""
    due = -math.inf

    async def receive_in_time() -> Any:
        nonlocal due
        message, now = await receive(), time.monotonic()
        due = max(due + 1.0 / MAX_RATE, now - 1.0)
        if due > now:
            await asyncio.sleep(due - now)
        return message

    return receive_in_time


class _Notes:
    """Lines about what was ignored, at most one in :data:`LINE_EVERY_S`."""

    def __init__(self) -> None:
        self._ignored, self._last = 0, -math.inf

    def note(self, reason: str, what: str = "message") -> None:
        """Print why a message or a connection was ignored, or count it."""
        self._ignored += 1
        if time.monotonic() - self._last >= LINE_EVERY_S:
            more = f" (and {self._ignored - 1} more)" if self._ignored > 1 else ""
            print(f"viewer: ignored a {what} of a page: {reason}{more}", flush=True)
            self._ignored, self._last = 0, time.monotonic()


NOTES = _Notes()


class MessageGuard:
    """Hands a page's messages to viser if they set a control to a value that it offers, or say where the camera is.

    All others are dropped: uploads, which viser keeps in memory, and the request for a public address, which it would
    fulfill.
    """

    def __init__(self, server: Any) -> None:
        from viser._messages import GuiUpdateMessage

        self._kind = GuiUpdateMessage
        self._controls = server.gui._gui_input_handle_from_uuid
        websock = server._websock_server
        self._handle = websock._handle_incoming_message
        websock._handle_incoming_message = self.handle
        websock.on_client_connect(_guard_camera)
        # pages that were open before, and those that were connecting
        for client in server.get_clients().values():
            _guard_camera(client._websock_connection)
        server.on_client_connect(lambda client: _guard_camera(client._websock_connection))

    async def handle(self, client_id: int, message: Any) -> None:
        """Handle a message of a page."""
        reason = self._reason(message)
        if reason is None:
            await self._handle(client_id, message)
        elif reason:
            NOTES.note(reason)

    def _reason(self, message: Any) -> str | None:
        """Return why a message is ignored; empty if it is not worth a line, None if it is valid."""
        if type(message) is not self._kind:
            return ""
        if not isinstance(message.uuid, str) or not isinstance(message.updates, dict):
            return "no valid update of a control"
        control = self._controls.get(message.uuid)
        if control is None:  # the slider has been replaced since
            return ""
        name = shown(str(getattr(control, "label", "a control")))
        if message.updates.keys() != {"value"}:
            return f"{name} has no {shown(sorted(map(str, message.updates)))} to set"
        value = message.updates["value"]
        return None if is_offered(control, value) else f"{name} cannot be {shown(value)}"


def _guard_camera(connection: Any) -> None:
    """Let a page's own connection take nothing but its camera."""
    from viser._messages import ViewerCameraMessage

    original = connection._handle_incoming_message

    async def handle(client_id: int, message: Any) -> None:
        if type(message) is ViewerCameraMessage:
            numbers = np.hstack([value for value in vars(message).values() if value is not None])
            if np.issubdtype(numbers.dtype, np.number) and np.isfinite(numbers).all():
                await original(client_id, message)
            else:
                NOTES.note("its camera is not finite")

    connection._handle_incoming_message = handle


def is_offered(control: Any, value: Any) -> bool:
    """Return whether a control of viser can have a value: one of its options, within its range, of its type."""
    now, options = control._impl.value, getattr(control, "options", None)
    if getattr(control, "disabled", False) or not getattr(control, "visible", True):
        return False
    if options is not None:
        return isinstance(value, str) and value in options
    if isinstance(now, bool):
        return isinstance(value, bool)
    if isinstance(now, str):
        return isinstance(value, str) and len(value) <= MAX_TEXT
    if isinstance(now, int | float):
        low, high = getattr(control, "min", None), getattr(control, "max", None)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        # NaN compares False; a slider's end may be missed by a rounding error
        slack = 1e-9 * max(abs(low or 0.0), abs(high or 0.0))
        return number and (-1e12 if low is None else low - slack) <= value <= (1e12 if high is None else high + slack)
    return False
