"""Opens the client's connection to the store, and checks the store before the server starts."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final, cast

from redis.asyncio import Redis
from redis.cluster import PRIMARY
from redis.exceptions import NoPermissionError, RedisClusterException, RedisError, ResponseError

from store.engine.client import Client, Pool, pool_options
from store.engine.cluster import Cluster, connect_cluster
from store.engine.replicas import Wait
from store.engine.scripts import Evaluator
from store.engine.sentinel import connect_sentinel
from store.engine.urls import CLUSTER, SENTINEL, check_url, scheme_of, shown, unix_url
from store.errors import StartupError

if TYPE_CHECKING:
    from fakeredis import FakeServer

log = logging.getLogger("latchkey.store")

__all__ = ["acknowledged", "check_store", "connect", "unix_url"]

OLDEST: Final = (7, 0)
"""The oldest Redis with the Lua and the commands that the scripts use."""


async def connect(
    url: str, *, socket_timeout: float = 5.0, max_connections: int = 64, server: FakeServer | None = None
) -> Redis:
    """A client for the store at `url`; replies are bytes, integers, lists and None.

    The client never sends a command twice: a script with a lost reply may have run, so the caller reports the loss.
    The first command opens the first connection; `check_store` is meant to be that command.

    `url` is `memory`, `redis://`, `unix://`, `redis+sentinel://HOST:PORT,…/SERVICE` or `redis+cluster://HOST:PORT,…`;
    with TLS it begins with `rediss` (and may have `ssl_ca_certs`, `ssl_certfile` and the like in its query).
    `socket_timeout` is in seconds, for connecting and for each reply. `max_connections` is for each node of a cluster,
    in addition to the scripts' connections. `server` lets several clients share the data of one `memory` store.
    Raises StartupError for a URL that cannot be used.
    """
    if url == "memory":
        return _memory(server)
    check_url(url)
    try:
        if scheme_of(url) in CLUSTER:
            # The cluster client has the same commands but is no subclass.
            return cast(Redis, connect_cluster(url, socket_timeout, max_connections))
        if scheme_of(url) in SENTINEL:
            return connect_sentinel(url, socket_timeout, max_connections)
        return Client.on(Pool.from_url(url, **pool_options(socket_timeout, max_connections)), socket_timeout)
    except (ValueError, TypeError, RedisError, RedisClusterException, OSError):
        # The driver's message may quote part of the password.
        raise StartupError(
            f"The store's URL {shown(url)} cannot be read: check its hosts, ports and options, and that special "
            "characters in the password are percent-encoded."
        ) from None


def acknowledged(client: Redis, wait: Wait | None) -> Evaluator:
    """Runs scripts whose answers wait for replicas; without `wait` they do not wait. Raises StartupError for a store
    without replicas."""
    if wait is None:
        return client
    if not isinstance(client, (Client, Cluster)):
        raise StartupError("This store has no replicas: wait_replicas must be 0.")
    return client.acknowledged(wait)


async def check_store(client: Redis, url: str, wait: Wait | None = None) -> None:
    """Refuse a store that would lose data or cannot run the scripts.

    An evicted refresh token family would silently end replay detection, so `maxmemory-policy` must be `noeviction`.
    Raises StartupError if the policy differs or cannot be read, if the server is older than Redis 7.0, and if it cannot
    be reached. In a cluster every node in reach is checked, because a replica may be a primary tomorrow; a node that is
    away now does not prevent a start.

    If writes have to wait for replicas (`wait`), a store that does not allow WAIT is refused. Too few replicas at
    present only cause a log message: a replica that is away must not prevent a start, because the server can still
    serve everything else.
    """
    if url == "memory":
        return
    try:
        if not isinstance(client, Cluster):
            await _check_server(client, shown(url))
            if wait is not None:
                await _check_replicas(client, shown(url), wait)
            return
        await client.initialize()
    except (RedisError, RedisClusterException, OSError) as exc:
        raise StartupError(f"The store at {shown(url)} cannot be reached: {exc}") from None
    answered = 0
    for node in client.get_nodes():
        try:
            where = f"{shown(url)} ({node.name})"
            await _check_server(client, where, target_nodes=node)
            answered += 1
            if wait is not None and node.server_type == PRIMARY:
                await _check_replicas(client, where, wait, target_nodes=node)
        except (RedisError, RedisClusterException, OSError) as exc:
            log.warning("the store's node %s cannot be reached: %s", node.name, exc)
    if not answered:
        raise StartupError(f"The store at {shown(url)} cannot be reached: none of its nodes answers.")


async def _check_server(client: Redis, where: str, **node: Any) -> None:
    version = await _version(client, node)
    if version < OLDEST:
        named = ".".join(map(str, version))
        raise StartupError(f"The store at {where} is version {named}; Latchkey needs Redis 7.0 or Valkey 7.2.")
    policy = await _eviction_policy(client, node)
    if policy != "noeviction":
        raise StartupError(
            f"The store at {where} has maxmemory-policy {policy}, so it may drop live tokens and documents when "
            "memory runs short. Set `maxmemory-policy noeviction` there."
        )
    await _warn_of_slow_expiry(client, node)


async def _check_replicas(client: Redis, where: str, wait: Wait, **node: Any) -> None:
    """Checks that WAIT is allowed and enough replicas are connected: without a write before it, WAIT counts them."""
    try:
        found: int = await client.execute_command("WAIT", wait.replicas, 1, **node)
    except ResponseError as exc:
        barred = isinstance(exc, NoPermissionError) or "unknown command" in str(exc).lower()
        if not barred:  # for example, the node has just become a replica
            log.error("the store at %s cannot be asked for its replicas: %s", where, exc)
            return
        raise StartupError(
            f"The store at {where} does not let Latchkey wait for replicas: allow this user WAIT, or set "
            "wait_replicas to 0."
        ) from None
    if found < wait.replicas:
        log.error(
            "the store at %s has %d replicas connected, and wait_replicas is %d: until there are as many, revocations, "
            "rotations and all that moves credits are answered 503",
            where,
            found,
            wait.replicas,
        )


async def _warn_of_slow_expiry(client: Redis, node: dict[str, Any]) -> None:
    """Warns of expiry in the foreground: hosted data expires by tens of megabytes, which would block all calls."""
    with contextlib.suppress(RedisError, OSError):
        if "no" in (await client.config_get("lazyfree-lazy-expire", **node)).values():
            log.warning("the store has lazyfree-lazy-expire no: set it to yes, or expiring hosted data blocks it")


def _memory(server: FakeServer | None) -> Redis:
    import fakeredis  # slow to import, and only `memory` needs it

    client: Redis = fakeredis.FakeAsyncRedis(server=server or fakeredis.FakeServer(version=(7,)), protocol=2)
    return client


async def _version(client: Redis, node: dict[str, Any]) -> tuple[int, ...]:
    """The server's Redis version; for Valkey, the Redis version it is compatible with."""
    try:
        found: Any = (await client.info("server", **node)).get("redis_version", "0")
    except ResponseError:  # a user without the right to INFO; HELLO needs none
        reply = await client.execute_command("HELLO", **node)
        hello = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=False))
        found = hello.get(b"version", b"0").decode("ascii", "replace")
    numbers = str(found).split(".")[:2]
    return tuple(int(number) if number.isdecimal() else 0 for number in numbers)


async def _eviction_policy(client: Redis, node: dict[str, Any]) -> str:
    """The server's `maxmemory-policy`. Raises StartupError if neither INFO nor CONFIG GET shows it."""
    reason = "INFO memory does not name it"
    try:
        if policy := (await client.info("memory", **node)).get("maxmemory_policy"):
            return str(policy)
    except ResponseError as exc:
        reason = f"INFO memory: {exc}"
    try:
        config = await client.config_get("maxmemory-policy", **node)
        for value in config.values():
            return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
        reason += "; CONFIG GET does not name it either"
    except ResponseError as exc:
        reason += f"; CONFIG GET: {exc}"
    raise StartupError(
        f"The store's maxmemory-policy cannot be read ({reason}). It must be noeviction: "
        "allow this user INFO or CONFIG GET."
    )
