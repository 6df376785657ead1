"""Checks of the signing keys. Nothing can be derived: `keys signing revoke` ends a broken one."""

from __future__ import annotations

from typing import Any

import orjson

from store.crypto.jose.algorithms import is_signed
from store.crypto.jose.jwk import PublicKey, parse_key
from store.crypto.jose.private import PrivateKey
from store.crypto.sealed_secrets import SealedSecrets
from store.crypto.signing_rows import SigningRow, rows_of
from store.crypto.signing_store import signing_secrets
from store.errors import StoreError
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, found
from store.fsck.reading import Look, row_of
from store.parsed_keys import ParsedKey

_SIGNED = b"a text to sign"


async def judge_signing(context: FsckContext, at: ParsedKey, key: str, look: Look, seen: list[Any]) -> list[Finding]:
    """Checks that each key is whole, that it opens, and that its halves belong together."""
    fields = row_of(seen[0])
    rows = rows_of(fields)
    sound = {row.kid for row in rows}
    lost = {name.rpartition(":")[0] for name in fields} - sound
    wrong = [found("signing", key, f"the key {kid} has no sound state") for kid in sorted(lost)]
    secrets = signing_secrets(context.ring)
    for row in rows:
        if row.revoked:
            continue
        problem = _problem(row, secrets)
        if problem:
            wrong.append(found("signing", key, f"the key {row.kid} {problem}"))
    return wrong


def _problem(row: SigningRow, secrets: SealedSecrets) -> str:
    """What is wrong with a key; empty if nothing is."""
    public = _public(row)
    if public is None:
        return "has no public half of its name"
    if not row.private:
        return ""
    try:
        private = PrivateKey.load(row.algorithm, secrets.open(row.kid, row.private))
        fits = is_signed(row.algorithm, public.key, _SIGNED, private.sign(_SIGNED))
    except StoreError:
        return "does not open under a configured secret key"
    except ValueError:
        fits = False
    return "" if fits else "has halves that do not belong together"


def _public(row: SigningRow) -> PublicKey | None:
    try:
        public = parse_key(orjson.loads(row.public))
    except ValueError:
        return None
    return public if public.thumbprint == row.kid else None
