"""The commands of `api`, and what declarations of commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

ABSENT = argparse.SUPPRESS
Verbs = Callable[..., argparse.ArgumentParser]


def add_apis(verb: Verbs) -> None:
    """Declares the verbs of `api`."""
    create = verb(
        "create",
        "apis.create_api",
        "register an API that apps call with tokens of this server",
        '--identifier https://orders.example.com --name Orders --scope "orders:read=See your orders"',
    )
    about = "the address that apps name as `resource`; it never changes"
    create.add_argument("--identifier", metavar="URI", required=True, help=about)
    _api_options(create, required=True)
    verb("list", "apis.list_apis", "list all APIs", "", "--json")
    about = "change only the given values; --scope replaces all scopes"
    update = verb("update", "apis.update_api", about, "https://orders.example.com --token-format jwt")
    _api_options(update, required=False)
    add_status(update, disable="refuse its calls, and issue no tokens for it")
    rotate = verb("rotate-secret", "apis.rotate_secret", "make a new client_secret", "https://orders.example.com")
    rotate.add_argument("--drop-old", action="store_true", help="end the previous secret at once")
    question = "Delete the API {api}, and every token for it?"
    delete = verb("delete", "apis.delete_api", "delete an API", "https://orders.example.com", ask=question)
    for named in (verb("show", "apis.show_api", "show an API", "https://orders.example.com"), update, rotate, delete):
        named.add_argument("api", metavar="CLIENT_ID|URI", help="as `api list` shows it")


def add_status(update: argparse.ArgumentParser, *, disable: str) -> None:
    """Declares the flags that switch an app or an API off and on. `disable`: the help of the first."""
    status = update.add_mutually_exclusive_group()
    for flag, word, about in (("--disable", "disabled", disable), ("--enable", "active", "enable it again")):
        status.add_argument(flag, action="store_const", dest="status", const=word, default=ABSENT, help=about)


def _api_options(parser: argparse.ArgumentParser, required: bool) -> None:
    def add(option: str, about: str, **options: Any) -> None:
        parser.add_argument(option, help=about, default=ABSENT, **options)

    many: dict[str, Any] = {"action": "append"}
    add("--name", "what people see", metavar="N", required=required)
    about = "a scope and its title for people; NAME alone is its own title; may be repeated"
    add("--scope", about, metavar="NAME=TITLE", dest="scopes", required=required, **many)
    add("--detail", "a second sentence for people about a scope; may be repeated", metavar="NAME=TEXT", **many)
    add("--care", "a scope that the consent page warns of; may be repeated", metavar="NAME", **many)
    about = "a scope that apps get only from people who used a second step; may be repeated; empty for none"
    add("--second-step", about, metavar="NAME", **many)
    about = "opaque (default): the API introspects each token here; jwt: it verifies signatures itself (RFC 9068)"
    add("--token-format", about, choices=("opaque", "jwt"))
    add("--owner", "the person who manages it in the browser; empty for nobody", metavar="EMAIL|SUB")
    add("--signing-alg", "signature algorithm of JWTs; default: ES256", choices=("ES256", "RS256"))
    add("--token-lifetime", "lifetime of its access tokens: 60 to 3600; default: 600", metavar="SECONDS", type=int)
