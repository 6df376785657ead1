"""The commands of the keys: their flags and examples. `cli/commands_parser.py` has the others."""

from __future__ import annotations

from cli.apis_parser import Verbs

ALGORITHMS = ("RS256", "ES256", "EdDSA")
"""What `store/crypto/jose/private.py` makes keys for. Help doesn't load the store."""


def add_secret_keys(verb: Verbs) -> None:
    """The commands of the secret keys."""
    keys = "keys"
    verb("generate", f"{keys}.generate_key", "print a new key for LATCHKEY_SECRET_KEYS", "", offline=True)
    verb(
        "list",
        f"{keys}.list_keys",
        "list the keys, and since when each is in use; the first one seals",
        "",
        offline=True,
    )
    verb("rotate", f"{keys}.rotate_keys", "seal with a new key from now on", "")
    about = "re-encrypt every document with the newest key; can be repeated"
    verb("reencrypt", f"{keys}.reencrypt", about, "")
    retire = verb("retire", f"{keys}.retire_key", "remove a key that seals nothing any more", "1")
    retire.add_argument("id", metavar="ID", type=int, help="as `keys list` shows it")


def add_signing_keys(verb: Verbs) -> None:
    """The commands of the keys that sign."""
    about = "list the signing keys, oldest first, with their states"
    verb("list", "signing.list_keys", about, "")
    rotate = verb("rotate", "signing.rotate_keys", "publish successors, which sign in a day", "", "--alg ES256 --now")
    rotate.add_argument(
        "--alg", metavar="ALG", choices=ALGORITHMS, help="only RS256, ES256 or EdDSA (default: each in use)"
    )
    rotate.add_argument("--now", action="store_true", help="let them sign at once, before programs fetch the new set")
    question = "End the signing key {kid}? Tokens that it signed become invalid."
    revoke = verb("revoke", "signing.revoke_key", "end a key at once, everywhere", "KID", ask=question)
    revoke.add_argument("kid", metavar="KID", help="as `keys signing list` shows it")
