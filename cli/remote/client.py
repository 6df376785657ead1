"""Calls the management interface of a server elsewhere."""

from __future__ import annotations

import http.client
import json
import re
import secrets
import stat
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from cli.terminal.parser import UsageError
from latchkey import __version__
from store.operators.operator_keys import PREFIX
from store.refused import Refused

SECONDS = 60.0
"""How long a call may take."""
MOST_KEY_FILE = 4096
MOST_ANSWER = 64 << 20
BASE = "/api/admin/v1"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ServerUnreachable(OSError):
    """The server cannot be reached, or does not answer as the management interface does. `retry_after`: seconds that
    its answer asks to wait."""

    retry_after: int | None = None


class RemoteServer:
    """A server, and the key for it. Each method raises Refused with the server's error, ServerUnreachable."""

    def __init__(self, url: str, key: str) -> None:
        self._url = urlsplit(check_url(url))
        self._key = key

    def get(self, path: str, **query: str | int | None) -> Any:
        """The JSON of a GET. Parameters that are None or empty are left out."""
        sent = {name: value for name, value in query.items() if value not in (None, "")}
        return self._json("GET", path + (f"?{urlencode(sent)}" if sent else ""), None)

    def do(self, method: str, path: str, body: dict[str, Any] | None = None, *, key: str | None = None) -> Any:
        """The JSON of a write. A POST has an idempotency key, `key` or a new one."""
        return self._json(method, path, body if body is not None or method != "POST" else {}, key)

    def upload(self, path: str, file: bytes, media_type: str) -> Any:
        """The JSON of a PUT of a file."""
        return self._json("PUT", path, file, media_type=media_type)

    def items(self, path: str, most: int | None = None, **query: str | int | None) -> Iterator[dict[str, Any]]:
        """Yields the items of a list, page by page, at most `most`."""
        cursor, left = "", most
        while left is None or left > 0:
            page = self.get(path, **query, limit=100 if left is None else min(100, left), cursor=cursor)
            yield from page["items"]
            left = None if left is None else left - len(page["items"])
            cursor = page.get("nextCursor") or ""
            if not cursor:
                return

    def lines(self, path: str) -> Iterator[bytes]:
        """Yields the pieces of an answer that is a file."""
        connection, response = self._send("GET", path, None, None)
        with connection_of(connection):
            if response.status != 200:
                raise refusal_in(response.status, response.read(MOST_ANSWER))
            while piece := response.read(1 << 16):
                yield piece

    def person(self, who: str) -> dict[str, Any]:
        """The person with this address or user id. Raises Refused("not_found")."""
        found = self.get("/people", query=who)["items"]
        if len(found) != 1:
            raise Refused("not_found", "No such person.")
        shown: dict[str, Any] = found[0]
        return shown

    def _json(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | bytes | None,
        key: str | None = None,
        media_type: str = "application/json",
    ) -> Any:
        connection, response = self._send(method, path, body, key, media_type)
        with connection_of(connection):
            try:
                read = response.read(MOST_ANSWER)
            except (OSError, http.client.HTTPException) as error:
                raise self._unreachable(error) from None
        if response.status == HTTPStatus.NOT_FOUND and not self._is_managed():
            raise ServerUnreachable(
                f"{self._url.netloc} has no management interface: give the address of the operations port (--ops-port)"
            )
        if response.status >= 400:
            refusal = refusal_in(response.status, read)
            refusal.retry_after = seconds_in(response.getheader("Retry-After"))
            raise refusal
        try:
            return json.loads(read)
        except ValueError:
            raise ServerUnreachable(
                f"{self._url.netloc} does not answer as an operations port of Latchkey does"
            ) from None

    def _is_managed(self) -> bool:
        """Whether this address has the management interface: the list of apps is always there. Raises
        ServerUnreachable."""
        connection, response = self._send("GET", "/apps", None, None)
        with connection_of(connection):
            return response.status != HTTPStatus.NOT_FOUND

    def _send(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | bytes | None,
        key: str | None,
        media_type: str = "application/json",
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=SECONDS)
        headers = {"Authorization": f"Bearer {self._key}", "User-Agent": f"latchkey/{__version__}"}
        if method == "POST":
            headers["Idempotency-Key"] = key or secrets.token_hex(16)
        sent = json.dumps(body).encode() if isinstance(body, dict) else body
        if sent is not None:
            headers["Content-Type"] = media_type
        try:
            connection.request(method, BASE + path, sent, headers)
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> ServerUnreachable:
        said = str(error) or type(error).__name__
        return ServerUnreachable(f"{self._url.netloc} cannot be reached: {said}")


class connection_of:
    """Closes a connection at the end of the block."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        """Begins the block."""

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def part(text: str) -> str:
    """A part of a path."""
    return quote(text, safe="")


def seconds_in(header: str | None) -> int | None:
    """The seconds of a Retry-After header; None without one, or for a date."""
    return int(header) if header and re.fullmatch("[0-9]{1,9}", header, re.ASCII) else None


def refusal_in(status: int, body: bytes) -> Refused | ServerUnreachable:
    """The server's error as the exception that a local command would raise."""
    try:
        found = json.loads(body)
        code, description = str(found["error"]), str(found["error_description"])
    except (ValueError, LookupError, TypeError):
        return ServerUnreachable(f"the server answered {status}, not as an operations port of Latchkey does")
    if code == "invalid_token":
        description = (
            "The server refuses the key: it is wrong, expired, revoked, or for another network. Make one on the "
            "server's machine with `latchkey operator-key create`."
        )
    return Refused(code, description)


def check_url(url: str) -> str:
    """The origin of a server. Raises UsageError, also for plain http to another machine: the key would be readable on
    the way."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host or parts.path.strip("/") or parts.query or parts.username:
        raise UsageError("--server is the address of an operations port, such as https://ops.example.org:8081")
    if parts.scheme == "http" and host not in LOOPBACK:
        raise UsageError(
            f"--server over http would show the key to everybody on the way: use https, or a tunnel such as "
            f"`ssh -N -L 8081:localhost:{parts.port or 8081} {host}` and --server http://localhost:8081"
        )
    return url


def read_key(file: str) -> str:
    """The operator key in a file that only its owner reads. Raises UsageError, with what to do instead."""
    path = Path(file)
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise UsageError(f"--key-file {file} is no file")
        if state.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(f"--key-file {file} can be read by others: run `chmod 600 {file}`")
        text = path.read_bytes()[:MOST_KEY_FILE].decode("ascii").strip()
    except OSError as error:
        raise UsageError(f"--key-file {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        text = ""
    if not text.startswith(PREFIX) or len(text.split()) != 1:
        raise UsageError(
            f"--key-file {file} has no operator key: it is one line that begins with {PREFIX}, as "
            "`latchkey operator-key create` prints it"
        )
    return text
