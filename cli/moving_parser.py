"""The commands with which people move in and out."""

from __future__ import annotations

import argparse

VENDORS = ("keycloak", "auth0", "django", "firebase", "supabase")


def add_import(command: argparse.ArgumentParser) -> None:
    """Declares the flags of `import`."""
    command.set_defaults(run="moving.import_people", ask="", offline=False, password_stdin=False)
    command.add_argument("file", metavar="FILE", help="JSON lines, one person each, or an export; - is standard input")
    about = f"read the export of another server: {', '.join(VENDORS)}"
    command.add_argument("--from", metavar="SERVER", dest="vendor", choices=VENDORS, default="", help=about)
    about = "for Auth0: the file with password hashes, which Auth0's support sends"
    command.add_argument("--passwords", metavar="FILE", help=about)
    about = "for Firebase: a file with the hash parameters, which the Firebase console shows"
    command.add_argument("--hash-config", metavar="FILE", help=about)
    about = "the issuer of a provider in the export, for links to it; may be repeated"
    command.add_argument("--issuer", metavar="NAME=URL", dest="issuers", action="append", default=[], help=about)
    command.add_argument("--dry-run", action="store_true", help="show what would happen, and write nothing")
    about = "if the address has an account, change its name and add the links, instead of refusing the line"
    command.add_argument("--update", action="store_true", help=about)


def add_export(command: argparse.ArgumentParser) -> None:
    """Declares the flags of `export`."""
    command.set_defaults(run="moving.export_people", ask="", offline=False, password_stdin=False)
    command.add_argument("file", metavar="FILE", help="- is standard output; only its owner can read the file")
    about = "include password hashes and the secrets of authenticator apps: protect the file like the store"
    command.add_argument("--hashes", action="store_true", help=about)
