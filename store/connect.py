"""The client library's connection to the store: how it is opened, pooled and checked before the server starts."""

from __future__ import annotations

import contextlib
import logging
import select
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException, RedisError, ResponseError

from store.errors import StartupError
from store.lanes import Lane

if TYPE_CHECKING:
    from fakeredis import FakeServer

log = logging.getLogger("latchkey.store")

__all__ = ["check_store", "connect", "unix_url"]

POOL_WAIT: Final = 2.0
"""Seconds a call waits for a free connection before the store counts as unavailable."""

OLDEST: Final = (7, 0)
"""The oldest Redis whose Lua and commands the scripts are written for."""

_SCHEMES: Final = ("redis", "rediss", "unix")
# What a URL may say about the connection. Retries, decoding and the protocol are fixed: the scripts depend on them.
_URL_OPTIONS: Final = frozenset({"db", "username", "password"})


def unix_url(path: str) -> str:
    """The URL of a store that listens on the unix socket at `path`."""
    return "unix://" + quote(path)


async def connect(
    url: str, *, socket_timeout: float = 5.0, max_connections: int = 64, server: FakeServer | None = None
) -> Redis:
    """A client for the store at `url`; replies are bytes, integers, lists and None.

    No command is ever sent twice by the client: a script whose reply was lost may have run, so the loss is the
    caller's to report. The first command opens the first connection; `check_store` is meant to be that command.

    `url` is `memory`, `redis://`, `rediss://` (with `ssl_ca_certs`, `ssl_certfile` and the like in its query) or
    `unix://`. `socket_timeout` is in seconds, for connecting and for each reply. `server` lets several clients share
    the data of one `memory` store. Raises StartupError for a URL that cannot be used.
    """
    if url == "memory":
        return _memory(server)
    _check_url(url)
    try:
        pool = _Pool.from_url(
            url,
            timeout=POOL_WAIT,
            max_connections=max_connections,
            socket_timeout=socket_timeout,
            socket_connect_timeout=socket_timeout,
            retry=Retry(NoBackoff(), 0),
            retry_on_error=[],
            retry_on_timeout=False,
            health_check_interval=0,
            decode_responses=False,
            # With RESP3, redis-py 8 turns maintenance notifications on and then reuses connections the server closed.
            protocol=2,
            client_name="latchkey",
        )
        pool.make_connection()  # type: ignore[no-untyped-call]  # refuses options that do not exist
    except (ValueError, TypeError, RedisError):
        # The driver's message may quote a part of the password.
        raise StartupError(
            f"The store's URL {_shown(url)} cannot be read: check its port and its options, and that special "
            "characters in the password are percent-encoded."
        ) from None
    client = _Client(connection_pool=pool)
    client.auto_close_connection_pool = True
    client.lane = Lane(pool.make_connection, socket_timeout)
    return client


async def check_store(client: Redis, url: str) -> None:
    """Refuse a store that would lose what it was given or cannot run the scripts.

    An evicted refresh token family would silently end replay detection, so `maxmemory-policy` must be `noeviction`.
    Raises StartupError when it is not, when that cannot be found out, when the server is older than Redis 7.0 and when
    it cannot be reached.
    """
    if url == "memory":
        return
    try:
        version = await _version(client)
        policy = await _eviction_policy(client)
    except (RedisError, RedisClusterException, OSError) as exc:
        raise StartupError(f"The store at {_shown(url)} cannot be reached: {exc}") from None
    if version < OLDEST:
        shown = ".".join(map(str, version))
        raise StartupError(f"The store at {_shown(url)} is version {shown}; Latchkey needs Redis 7.0 or Valkey 7.2.")
    if policy != "noeviction":
        raise StartupError(
            f"The store at {_shown(url)} has maxmemory-policy {policy}, so it may drop live tokens and documents when "
            "memory runs short. Set `maxmemory-policy noeviction` there."
        )
    await _warn_of_slow_expiry(client)


async def _warn_of_slow_expiry(client: Redis) -> None:
    """Hosted data ends by expiry, tens of megabytes at once; freed in the foreground, that holds everybody up."""
    with contextlib.suppress(RedisError, OSError):
        if "no" in (await client.config_get("lazyfree-lazy-expire")).values():
            log.warning("the store has lazyfree-lazy-expire no: set it to yes, or the end of hosted data holds it up")


class _Client(Redis):
    """redis-py's client, but for scripts: those travel on a lane."""

    lane: Lane

    def evalsha(self, sha: str, numkeys: int, *keys_and_args: Any) -> Awaitable[Any]:
        """The script's reply."""
        return self.lane.call(b"EVALSHA", sha, numkeys, *keys_and_args)

    def eval(self, script: str, numkeys: int, *keys_and_args: Any) -> Awaitable[Any]:
        """The script's reply."""
        return self.lane.call(b"EVAL", script, numkeys, *keys_and_args)

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Closes the lane too."""
        await self.lane.close()
        await super().aclose(close_connection_pool)


class _Pool(BlockingConnectionPool):
    async def ensure_connection(self, connection: AbstractConnection) -> None:
        """Replace a connection that the server closed while it lay idle.

        redis-py looks at what the event loop has read so far. Asking the kernel also finds a close that the loop has
        not come round to yet, so a restart of the store costs no request.
        """
        if _has_input(connection):
            await connection.disconnect(nowait=True)
        await super().ensure_connection(connection)


def _has_input(connection: AbstractConnection) -> bool:
    """Whether an idle connection can be read from: with no command under way, that is an end of file or debris."""
    writer = connection._writer
    if writer is None:
        return False
    poll = select.poll()
    poll.register(writer.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _memory(server: FakeServer | None) -> Redis:
    import fakeredis  # slow to import, and only `memory` needs it

    client: Redis = fakeredis.FakeAsyncRedis(server=server or fakeredis.FakeServer(version=(7,)), protocol=2)
    return client


def _check_url(url: str) -> None:
    scheme, _, rest = url.partition("://")
    if scheme not in _SCHEMES:
        raise StartupError(
            f"The store's URL {_shown(url)} is not one of embedded, memory, redis://, rediss:// and unix://."
        )
    for name, _ in parse_qsl(rest.partition("?")[2], keep_blank_values=True):
        if name not in _URL_OPTIONS and not (scheme == "rediss" and name.startswith("ssl_")):
            raise StartupError(f"The store's URL {_shown(url)} has an option that it may not set: {name}")


def _shown(url: str) -> str:
    """The URL without user, password and query, for messages; also when the password makes the URL a broken one."""
    scheme, mark, rest = url.partition("://")
    if "@" in rest.partition("?")[2]:
        return f"{scheme}{mark}..."
    return f"{scheme}{mark}".rpartition("@")[2] + rest.rpartition("@")[2].partition("?")[0]


async def _version(client: Redis) -> tuple[int, ...]:
    """The server's Redis version; of a Valkey, the Redis version it stands for."""
    try:
        found: Any = (await client.info("server")).get("redis_version", "0")
    except ResponseError:  # a user without the right to INFO; HELLO needs none
        reply = await client.execute_command("HELLO")  # type: ignore[no-untyped-call]
        hello = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=False))
        found = hello.get(b"version", b"0").decode("ascii", "replace")
    numbers = str(found).split(".")[:2]
    return tuple(int(number) if number.isdecimal() else 0 for number in numbers)


async def _eviction_policy(client: Redis) -> str:
    """The server's `maxmemory-policy`; raises StartupError when neither INFO nor CONFIG GET tells."""
    reason = "INFO memory does not name it"
    try:
        if policy := (await client.info("memory")).get("maxmemory_policy"):
            return str(policy)
    except ResponseError as exc:
        reason = f"INFO memory: {exc}"
    try:
        config = await client.config_get("maxmemory-policy")
        for value in config.values():
            return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
        reason += "; CONFIG GET does not name it either"
    except ResponseError as exc:
        reason += f"; CONFIG GET: {exc}"
    raise StartupError(
        f"The store's maxmemory-policy cannot be read ({reason}). It must be noeviction: "
        "allow this user INFO or CONFIG GET."
    )
