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
    about = "of Auth0: the file with the password hashes, which its support sends"
    command.add_argument("--passwords", metavar="FILE", help=about)
    about = "of Firebase: the hash parameters, as its console shows them"
    command.add_argument("--hash-config", metavar="FILE", help=about)
    about = "the issuer of a provider in the export, for links to it; may be repeated"
    command.add_argument("--issuer", metavar="NAME=URL", dest="issuers", action="append", default=[], help=about)
    command.add_argument("--dry-run", action="store_true", help="say what would happen, and write nothing")
    about = "if the address has an account, change its name and add the links; else the line is refused"
    command.add_argument("--update", action="store_true", help=about)


def add_export(command: argparse.ArgumentParser) -> None:
    """Declares the flags of `export`."""
    command.set_defaults(run="moving.export_people", ask="", offline=False, password_stdin=False)
    command.add_argument("file", metavar="FILE", help="- is standard output; a file is readable by its owner alone")
    about = "with password hashes and the secrets of authenticator apps: keep the file as safe as the store"
    command.add_argument("--hashes", action="store_true", help=about)
