"""The commands about apps: their flags and examples."""

from __future__ import annotations

import argparse
import re
from typing import Any

from cli.apis_parser import ABSENT, Verbs, add_status

ROLES = ("owner", "developer", "viewer")
KEPT = "and, in 30 days, every document it keeps"
PURGED = "and every document it keeps, now"
"""The question's words for what an app's deletion does to documents."""


def limit(text: str) -> int:
    """A number of entries. Raises argparse.ArgumentTypeError."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text, re.ASCII):
        raise argparse.ArgumentTypeError("a whole number from 1")
    return int(text)


def add_apps(verb: Verbs) -> None:
    """Adds the verbs of `app`."""
    create = verb(
        "create",
        "apps.create_app",
        "register an app",
        '--name "My app" --redirect-uri https://app.example.com/callback --scopes "profile data:read"',
        "--name Mobile --redirect-uri com.example.mobile:/callback --scopes profile --public",
    )
    create.add_argument("--client-id", metavar="ID", help="default: a random one")
    _app_options(create, required=True)
    verb("list", "apps.list_apps", "list all apps", "", "--json")
    update = verb(
        "update",
        "apps.update_app",
        "change only the given values; --redirect-uri and --scopes replace all",
        'my-app --scopes "profile credits:read"',
        "my-app --disable",
    )
    _app_options(update, required=False)
    add_status(update, disable="stop every token of it")
    about = "with --disable: the reason, which its owners see in the portal and in an e-mail; one line"
    update.add_argument("--reason", metavar="R", dest="suspended_reason", default=ABSENT, help=about)
    rotate = verb("rotate-secret", "apps.rotate_secret", "make a new client_secret", "my-app")
    rotate.add_argument("--drop-old", action="store_true", help="end the previous secret at once")
    about = "make a new webhook signing secret; the previous one also signs for 24 hours"
    resign = verb("rotate-webhook-secret", "webhooks.rotate_secret", about, "my-app")
    about = "list an app's newest webhook events, posted or waiting"
    events = verb("deliveries", "webhooks.list_deliveries", about, "my-app", "my-app --limit 100")
    events.add_argument("--limit", metavar="N", type=limit, default=20, help="how many (default: 20)")
    about = "post an event to an app again"
    again = verb("replay", "webhooks.replay", about, "my-app 4cTJmRk3nEWw0pYzQe1uZA")
    question = "Delete the app {client_id}, every token of it {documents}?"
    about = "delete an app; people keep its documents for 30 days"
    delete = verb("delete", "apps.delete_app", about, "my-app", "my-app --purge", ask=question)
    about = "delete its documents now, also those of an app that was deleted before"
    delete.add_argument("--purge", dest="documents", action="store_const", const=PURGED, default=KEPT, help=about)
    for named in (
        verb("show", "apps.show_app", "show an app", "my-app"),
        update,
        rotate,
        resign,
        events,
        again,
        delete,
    ):
        named.add_argument("client_id", metavar="CLIENT_ID", help="as `app list` shows it")
    again.add_argument("id", metavar="ID", help="as `app deliveries` shows it")


def add_members(verb: Verbs) -> None:
    """Adds the verbs of `app member`."""
    about = "add a person to the team of an app, or change their role; effective at once, for owners too"
    add = verb("add", "members.add_member", about, "my-app ada@example.com --role developer")
    add.add_argument("--role", choices=ROLES, required=True, help="what the person may do")
    about = "remove a person from the team of an app; an owner must remain"
    remove = verb("remove", "members.remove_member", about, "my-app ada@example.com")
    for named in (verb("list", "members.list_members", "list the team of an app", "my-app"), add, remove):
        named.add_argument("client_id", metavar="CLIENT_ID", help="as `app list` shows it")
    for named in (add, remove):
        named.add_argument("email", metavar="EMAIL|SUB", help="e-mail address, or the `sub` that public apps see")


def add_registration_tokens(verb: Verbs) -> None:
    """Adds the verbs of `app registration-token`."""
    about = "make a token that lets apps register themselves (--dynamic-registration token)"
    create = verb("create", "registration.create_token", about, "", '--uses 1 --expires 7d --name "For Bea"')
    create.add_argument("--uses", metavar="N", type=limit, help="how many apps it registers (default: no limit)")
    create.add_argument("--expires", metavar="D", help="a date, a time (UTC), or a duration such as 12h or 30d")
    create.add_argument("--name", metavar="N", default="", help="what it is for; only `list` shows it")
    verb("list", "registration.list_tokens", "list the valid tokens, oldest first", "")
    question = "End the registration token {id}? Apps that registered with it stay."
    revoke = verb("revoke", "registration.revoke_token", "end a token", "1f0c9a3e", ask=question)
    revoke.add_argument("id", metavar="ID", help="as `app registration-token list` shows it")


def _app_options(parser: argparse.ArgumentParser, required: bool) -> None:
    def add(option: str, about: str, **options: Any) -> None:
        parser.add_argument(option, help=about, default=ABSENT, **options)

    add("--name", "what people see", metavar="N", required=required)
    about = "accept a name that contains Latchkey's own, or mixes scripts"
    parser.add_argument("--any-name", action="store_true", help=about)
    add(
        "--redirect-uri",
        "where the browser returns with the code; may be repeated",
        metavar="U",
        action="append",
        dest="redirect_uris",
        required=required,
    )
    add("--scopes", 'such as "profile data:read"; scopes of APIs by their names', metavar="S", required=required)
    add("--homepage", "http or https address", metavar="URL")
    about = "a PNG, JPEG or WebP of at most 1 MiB, or the https address of one; empty for none"
    add("--logo", about, metavar="FILE|URL", dest="logo_from")
    add("--webhook-url", "where events are posted; empty for nowhere", metavar="URL")
    about = "an event type to post, or all (default); may be repeated; empty for none"
    add("--webhook-event", about, metavar="TYPE", action="append", dest="webhook_events")
    about = "where people return after the app has signed them out; may be repeated; empty for nowhere"
    add("--post-logout-redirect-uri", about, metavar="U", action="append", dest="post_logout_redirect_uris")
    about = "where logout tokens are posted when a session ends; empty for nowhere"
    add("--backchannel-logout-uri", about, metavar="URL")
    add("--owner", "the person who manages it in the browser, instead of the first owner", metavar="EMAIL|SUB")
    add("--refresh-retry-seconds", "0 to 60: how long the app may repeat its latest refresh", metavar="N", type=int)
    about = "days after a sign-in when its refresh tokens end; 0: only the server's limit applies"
    add("--refresh-lifetime-days", about, metavar="N", type=int)
    add("--id-token-alg", "how its ID tokens are signed; ES256 is the quickest", choices=("RS256", "ES256", "EdDSA"))
    about = "public (default): `sub` is the person's id; pairwise: an id for each sector. It never changes"
    add("--subject-type", about, choices=("public", "pairwise"))
    about = "https address of a JSON array with the redirect URIs of a pairwise app; its host is the sector"
    add("--sector-identifier-uri", about, metavar="URI", dest="sector_uri")
    methods = ("client_secret", "private_key_jwt", "none")
    add("--auth-method", "how the app authenticates; default: client_secret", choices=methods)
    keys = parser.add_mutually_exclusive_group()
    about = "its public keys, a JSON Web Key Set; empty for none"
    keys.add_argument("--jwks", metavar="FILE", default=ABSENT, help=about)
    about = "where it publishes its keys; empty for nowhere"
    keys.add_argument("--jwks-uri", metavar="URL", default=ABSENT, help=about)
    flag = argparse.BooleanOptionalAction
    add("--public", "no client_secret, PKCE only; the same as --auth-method none", action=flag)
    add("--require-pushed", "its authorization requests must be pushed (RFC 9126)", action=flag)
    add("--pkce-required", "PKCE is mandatory", action=flag)
    add("--dpop-required", "it gets tokens only with a DPoP proof", action=flag)
    add("--device-grant", "signs people in on devices that show a code (RFC 8628); on by default", action=flag)
    add("--hosted-storage", "keeps documents here; needs a data: scope", action=flag)
    about = "the operator's own app: it signs people in without a consent page, except for spending and data"
    add("--first-party", about, action=flag)
    about = "everybody who connects it needs a second step, even if its owner doesn't require one"
    add("--second-step", about, action=flag)
    about = "calls that it may make for itself in a minute; 0: as many as other apps"
    add("--calls-per-minute", about, metavar="N", type=int)
    about = "introspections that it may make in a minute; 0: as many as other apps"
    add("--introspections-per-minute", about, metavar="N", type=int)
    about = "micro-dollars that all people together may spend with it in a day (UTC); 0: as much as with other apps"
    add("--spend-per-day", about, metavar="N", type=int)
    about = "only members of this group may use it; may be repeated; empty for everybody"
    add("--allowed-group", about, metavar="GROUP", action="append", dest="allowed_groups")
    about = "fapi2: the FAPI 2.0 Security Profile, which sets all its settings and refuses weaker ones"
    add("--profile", about, choices=("fapi2", "none"))
    marks = parser.add_mutually_exclusive_group()
    marked: dict[str, Any] = {"dest": "verified", "default": ABSENT}
    about = "people see that the operator has verified it; an owner's change of name, redirect URIs or logo ends that"
    marks.add_argument("--verified", action="store_true", help=about, **marked)
    about = "people see that nobody has verified it; this also removes a proven domain"
    marks.add_argument("--not-verified", action="store_false", help=about, **marked)
    add("--iss", "iss in the authorization response (RFC 9207)", action=flag, dest="iss_in_response")
