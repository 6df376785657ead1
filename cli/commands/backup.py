"""`manage.py store backup` and `store restore`: copies of the embedded store, even while a server runs."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from pathlib import Path

from cli.commands.acts import by_operator
from cli.commands.context import Context
from cli.terminal.outcome import CommandResult
from cli.terminal.progress import ProgressBar
from runtime.wiring import KEY_FILE, open_keys, open_store
from settings.declared import Settings
from settings.types import EMBEDDED
from store.crypto.keyring import KeyFile, Keys
from store.engine import backup
from store.engine.connect import unix_url
from store.engine.restored import end_access
from store.refused import Refused

ELSEWHERE = (
    "This copies the embedded store alone. Redis, Valkey and clusters are copied by their own means: "
    "docs/operations.md says how."
)
KEYS_ARE_NOT_IN_IT = (
    "THE SECRET KEYS ARE NOT IN IT, and without them it is worthless: nobody can be signed in and no document be read. "
    "Keep them too, at another place: whoever has both has everything. {how}"
)
IN_THE_FILE = "They are in {path}; --keys FILE copies them as well."
CONFIGURED = "They are those of LATCHKEY_SECRET_KEYS."
ALIVE_AGAIN = "What was revoked, disconnected or disabled since the copy was made is alive again: end it again."
SIGN_IN_AGAIN = (
    "Every session, token and mailed link ended: people sign in again, and apps ask them to. What else was done since "
    "the copy is undone: disable accounts, disconnect apps, change passwords and revoke signing keys again."
)
LACKING = (
    "The copy holds things that {named} sealed, and {where} doesn't have {it}: nobody could open them. Give the key "
    "file from the time of the copy, or a later one (--keys). If {named} can't be found any more, "
    "--without-lost-keys restores the rest."
)
STILL_LACKING = "\nWhat {named} sealed can't be opened, because {where} doesn't have {it}. `fsck --deep` lists it."
COPIED = "They are in {path}: move that file elsewhere now."


async def back_up(context: Context, args: Namespace) -> CommandResult:
    """Copies a snapshot of the store into a new file, and reads it back. With `--keys`, copies the key file too. Raises
    Refused, StartupError, OSError; a file is written completely or not at all."""
    settings = context.settings
    if settings.redis_url != EMBEDDED:
        raise Refused("invalid_request", ELSEWHERE)
    if args.keys and not isinstance(context.keys, KeyFile):
        raise Refused("invalid_request", f"There is no key file to copy. {CONFIGURED}")
    target = Path(args.file).absolute()
    with ProgressBar(sys.stderr) as bar:
        rows = backup.save(settings.data_dir, target, bar.show)
    record = {"output": args.file, "rows": rows, "bytes": target.stat().st_size, "keys": args.keys or ""}
    if not isinstance(context.keys, KeyFile):
        how = CONFIGURED
    elif args.keys:
        # After the snapshot: the copy may have a newer key too many, but lacks none that sealed.
        _copy_keys(context.keys.path, Path(args.keys).absolute())
        how = COPIED.format(path=args.keys)
    else:
        how = IN_THE_FILE.format(path=context.keys.path)
    return CommandResult(record, note=KEYS_ARE_NOT_IN_IT.format(how=how))


def restore(settings: Settings, args: Namespace) -> CommandResult:
    """Restores a copy into the data directory, which must have no store, and checks that the keys open it. Raises
    Refused, StartupError, KeyRingError, OSError, and leaves the directory unchanged."""
    if settings.redis_url != EMBEDDED:
        raise Refused("invalid_request", ELSEWHERE)
    keys = settings.data_dir / KEY_FILE
    if settings.secret_keys and args.keys:
        raise Refused("invalid_request", f"--keys is not needed. {CONFIGURED}")
    if args.keys and keys.exists():
        backup.require_empty(settings.data_dir)  # who left --keys out would hear that next
        raise Refused("invalid_request", f"There is a key file already, {keys}: leave --keys out, or move it away.")
    if not (settings.secret_keys or args.keys or keys.exists()):
        raise Refused(
            "invalid_request", "A copy is worthless without the secret keys of its time: name their file with --keys."
        )
    with ProgressBar(sys.stderr) as bar:
        store = backup.begin_restore(settings.data_dir, Path(args.file).absolute(), bar.show)
    copied = False
    try:
        if args.keys:
            _copy_keys(KeyFile(Path(args.keys)).path, keys)
            copied = True
        rows = store.rows()
        ended, missing = asyncio.run(_open(settings, unix_url(store.socket_path), args))
    except BaseException:
        store.stop()
        backup.give_up(settings.data_dir)
        if copied:
            keys.unlink(missing_ok=True)
        raise
    store.stop()
    note = ALIVE_AGAIN if args.keep_tokens else SIGN_IN_AGAIN
    note += _lacking(STILL_LACKING, settings, args, missing) if missing else ""
    record = {"input": args.file, "rows": rows, "ended": ended, "dataDir": str(settings.data_dir)}
    return CommandResult(record, note=note)


async def end_tokens(context: Context, args: Namespace) -> CommandResult:
    """Ends all sessions and tokens, after a restore by other means. Raises StoreError."""
    return CommandResult({"ended": await end_access(context.store.client)}, note=SIGN_IN_AGAIN)


async def _open(settings: Settings, url: str, args: Namespace) -> tuple[int, tuple[int, ...]]:
    """Opens the store as a server does: checks the keys, and migrates to the present layout. Ends sessions and tokens
    unless they are kept; returns the number of rows ended, and the ids of needed keys that are missing. Raises
    Refused for missing keys, unless the operator gave them up."""
    async with open_store(settings, url, Keys(open_keys(settings))) as store:
        missing = store.key_state.missing
        if missing and not args.without_lost_keys:
            raise Refused("invalid_request", _lacking(LACKING, settings, args, missing))
        by_operator(store)
        store.security.note("store_restored_by_operator")
        return 0 if args.keep_tokens else await end_access(store.client), missing


def _lacking(words: str, settings: Settings, args: Namespace, missing: tuple[int, ...]) -> str:
    ids = ", ".join(map(str, missing))
    where = args.keys or ("LATCHKEY_SECRET_KEYS" if settings.secret_keys else str(settings.data_dir / KEY_FILE))
    named, it = (f"key {ids}", "it") if len(missing) == 1 else (f"the keys {ids}", "them")
    return words.format(named=named, where=where, it=it)


def _copy_keys(source: Path, target: Path) -> None:
    with backup.reserved(target), backup.write_privately(target) as file:
        file.write(source.read_bytes())
