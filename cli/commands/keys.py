"""`manage.py keys`: makes, rotates and retires the secret keys, in the key file or with the operator."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from argparse import Namespace
from collections.abc import Collection, Iterator
from itertools import chain

from cli.commands import key_ages
from cli.commands.context import Context
from cli.terminal.outcome import CommandResult
from cli.terminal.progress import ProgressBar
from runtime.wiring import KEY_FILE
from settings.declared import Settings
from settings.types import EMBEDDED
from store.crypto.keyring import KeyFile, KeyRing, KeyRingError, SecretKey
from store.engine.datadir import Lock
from store.errors import StartupError, StoreError
from store.keystate import NOTES_LOST
from store.moments import at, timestamp
from store.reencryption import Progress
from store.refused import Refused

RELOAD_SECONDS = 3.0
"""Longer than any running server takes to reload its key file, which it checks once a second."""

ROTATE_BY_HAND = (
    "The secret keys are configured, so they rotate in three steps. First append what `manage.py keys generate` prints "
    "to LATCHKEY_SECRET_KEYS behind the others, on every host, and restart every server, or reload it where they stand "
    "in its file. Then, when all have it, move it to the front on every host and do the same again. Last, 31 days "
    "later, bring the documents under it with `manage.py keys reencrypt` and `manage.py keys retire` the old one."
)


def generate_key(settings: Settings, args: Namespace) -> CommandResult:
    """Makes a key for the configuration, and changes nothing. Raises KeyRingError."""
    ring = _present_ring(settings)
    line = KeyRing.generate(_free_id({key.id for key in ring.keys} if ring else ()))
    note = "Nothing was changed: add this key to LATCHKEY_SECRET_KEYS, on every host. It is not kept here."
    return CommandResult({"key": line}, note=note)


def list_keys(settings: Settings, args: Namespace) -> CommandResult:
    """Lists the ids of the keys, and since when each is in use, if the store can be opened. The first one seals.
    Raises KeyRingError."""
    ring = _present_ring(settings)
    if ring is None:
        return key_ages.listed([])
    since, note = dict[int, int](), ""
    try:
        since = key_ages.known_since(settings)
    except (StartupError, StoreError, OSError) as error:
        note = f"The store can't be opened, so nobody knows since when these keys are in use: {error}"
    moments = {key_id: timestamp(at(moment)) for key_id, moment in since.items() if moment}
    keys = [{"id": key.id, "front": key == ring.front, "since": moments.get(key.id)} for key in ring.keys]
    return key_ages.listed(keys, note)


async def rotate_keys(context: Context, args: Namespace) -> CommandResult:
    """Adds a key to the key file: last until every running server can open what it seals, then first. Raises Refused,
    KeyRingError, StartupError, OSError."""
    if isinstance(context.keys, KeyRing):
        raise Refused("invalid_request", ROTATE_BY_HAND)
    with _sole_writer(context, context.keys) as file:
        present = file.ring.keys
        known = await context.store.key_state.known()
        new = SecretKey.parse(KeyRing.generate(_free_id(known | {key.id for key in present})))
        file.write(KeyRing((*present, new)))
        await context.store.key_state.check(file.ring)
        if context.server_runs:
            await asyncio.sleep(RELOAD_SECONDS)
        file.write(KeyRing((new, *present)))
        await context.store.key_state.check(file.ring)
    note = (
        f"Key {new.id} seals from now on. Copy the key file again now (`store backup FILE --keys NEW_FILE`): your "
        f"earlier copy can't open what key {new.id} seals. `keys reencrypt` brings the documents under it; in 31 days, "
        f"`keys retire {present[0].id}` drops the one before it."
    )
    return CommandResult({"id": new.id, "front": True}, note=note)


async def reencrypt(context: Context, args: Namespace) -> CommandResult:
    """Re-encrypts every document with the front key, also while a server runs. Skips finished documents, so a repeated
    command continues. Raises Refused, KeyRingError, OSError, StoreError."""
    if isinstance(context.keys, KeyRing):
        return await _walk(context, NOTES_LOST)
    with _sole_writer(context, context.keys) as file:
        context.store.keys.reload()
        if context.server_runs and (fresh := RELOAD_SECONDS - (time.time() - file.path.stat().st_mtime)) > 0:
            await asyncio.sleep(min(fresh, RELOAD_SECONDS))
        return await _walk(context, 0)


async def _walk(context: Context, lag: int) -> CommandResult:
    progress = Progress()
    with ProgressBar(sys.stderr) as bar:
        async for progress in context.store.reencryption.run(lag):
            bar.show(
                progress.done / max(progress.people, 1),
                f"{progress.done:,} of {progress.people:,} people, {progress.documents:,} documents, "
                f"{progress.renewed:,} re-encrypted",
            )
    record = {
        "id": context.store.keys.ring.front.id,
        "people": progress.people,
        "documents": progress.documents,
        "reencrypted": progress.renewed,
        "unreadable": progress.unreadable,
    }
    if not progress.unreadable:
        return CommandResult(record)
    note = "These open under no configured key, or are damaged; while there are any, no key that sealed is retired:\n"
    return CommandResult({**record, "unreadableNames": progress.named}, note=note + "\n".join(progress.named))


async def retire_key(context: Context, args: Namespace) -> CommandResult:
    """Removes a key if nothing sealed with it can still be live. Raises Refused, KeyRingError, OSError."""
    if isinstance(context.keys, KeyRing):
        await _forget(context, context.keys, args.id)
        note = (
            f"Now remove key {args.id} from LATCHKEY_SECRET_KEYS on every host, and restart every server, or reload it "
            "where they stand in its file."
        )
        return CommandResult({"id": args.id, "retired": True}, note=note)
    with _sole_writer(context, context.keys) as file:
        await _forget(context, file.ring, args.id)
        file.write(KeyRing(tuple(key for key in file.ring.keys if key.id != args.id)))
    return CommandResult({"id": args.id, "retired": True})


async def _forget(context: Context, ring: KeyRing, key_id: int) -> None:
    if ring.by_id(key_id) is None:
        raise Refused("not_found", f"There is no key {key_id}.")
    if ring.front.id == key_id:
        raise Refused("invalid_request", f"Key {key_id} is the front one, which seals: rotate first.")
    await context.store.key_state.retire(key_id)
    # A write in progress during the re-encryption may still have used this key.
    progress = Progress()
    with ProgressBar(sys.stderr) as bar:
        async for progress in context.store.reencryption.run(NOTES_LOST):
            bar.count(progress.done, progress.people)
    if progress.unreadable:
        raise Refused("invalid_request", f"Key {key_id} stays: some documents do not open. See keys reencrypt.")


@contextlib.contextmanager
def _sole_writer(context: Context, file: KeyFile) -> Iterator[KeyFile]:
    """The present key file, locked against other commands."""
    lock = Lock.take(context.settings.data_dir / f"{KEY_FILE}.lock")
    if lock is None:
        raise Refused("temporarily_unavailable", "Another command is changing the keys. Try again when it is done.")
    try:
        file.reload()
        yield file
    finally:
        lock.release()


def _present_ring(settings: Settings) -> KeyRing | None:
    """The existing keys; makes none."""
    if settings.secret_keys:
        return KeyRing.parse(settings.secret_keys)
    path = settings.data_dir / KEY_FILE
    return KeyFile(path).ring if settings.redis_url == EMBEDDED and path.exists() else None


def _free_id(taken: Collection[int]) -> int:
    """The highest id plus one, or the first free id if that is too high."""
    highest = max(taken, default=0)
    for key_id in chain(range(highest + 1, 256), range(1, highest)):
        if key_id not in taken:
            return key_id
    raise KeyRingError("all 255 key ids are taken; retire a key first")
