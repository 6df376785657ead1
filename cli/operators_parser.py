"""The commands about operators: keys of programs, roles of people."""

from __future__ import annotations

from cli.apis_parser import Verbs

ROLES = ("admin", "support", "auditor", "credits", "scim")
PEOPLES_ROLES = ("admin", "support", "auditor", "none")
"""As in `store/operators/roles.py`. Help doesn't load the store."""


def add_operator_keys(verb: Verbs) -> None:
    """Declares the verbs of `operator-key`."""
    create = verb(
        "create",
        "operators.create_key",
        "make a key for the operations port",
        "--role support --name Helpdesk",
        "--role credits --expires 90d --address 10.0.0.0/24",
    )
    about = "what it may do: admin, support, auditor, credits or scim; docs/operators/administration.md has the table"
    create.add_argument("--role", choices=ROLES, metavar="ROLE", required=True, help=about)
    create.add_argument("--name", metavar="N", default="", help="what it is for; the security log shows it")
    create.add_argument("--expires", metavar="T", help="a date, a time (UTC), or a duration such as 12h or 30d")
    create.add_argument("--address", metavar="NET", help="the only address or network that it works from")
    verb("list", "operators.list_keys", "list the valid keys, oldest first", "", "--json")
    question = "End the operator key {id}? Programs that use it are refused at once."
    revoke = verb("revoke", "operators.revoke_key", "revoke a key at once", "Q2hhbmdlIG1lIHBsZWFzZQ", ask=question)
    revoke.add_argument("id", metavar="ID", help="as `operator-key list` shows it")


def add_roles(verb: Verbs) -> None:
    """Declares the verbs of `user` about roles."""
    about = "give a person an operator role in the browser, or remove it; the person gets an e-mail"
    role = verb("role", "operators.give", about, "ada@example.com admin", "ada@example.com none")
    role.add_argument("email", metavar="EMAIL|SUB", help="e-mail address, or the `sub` that public apps see")
    about = "admin, support, auditor, or none"
    role.add_argument("role", metavar="ROLE", choices=PEOPLES_ROLES, help=about)
    verb("roles", "operators.list_roles", "list everybody with a role", "", "--json")
