"""Sample data of the pages about how a person signs in, and of the activity."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace as Sample
from typing import Any

from handlers.core.lists.paging import ListPart, part_of
from outbound.identity.ldap.directory import DirectorySettings
from outbound.identity.ldap.filters import parse_filter
from outbound.identity.providers import ISSUERS, LDAP, OIDC, TITLES, Provider, Providers
from tests.support.browser.portal_samples import NOW

PROVIDERS = [Sample(name=kind, title="Elsewhere", type=kind) for kind in ("oidc", *TITLES)]
"""A provider of each type."""


def elsewhere() -> Providers:
    """A provider of each type, of which none answers, and a directory that does not."""
    listed = (OIDC, *TITLES)
    titles = {OIDC: "Example Inc.", **TITLES}
    issuers = {OIDC: "https://login.example.invalid", **ISSUERS}
    servers = [Provider(one, titles[one], one, issuers[one], "us", create=True) for one in listed]
    wanted = parse_filter("(uid={login})")
    nobody = DirectorySettings("127.0.0.1", 1, "dc=example,dc=org", wanted)
    company = Provider("company", "Our company", LDAP, "ldap://127.0.0.1:1", "", create=True, directory=nobody)
    return Providers((*servers, company))


def several(rows: list[Any], name: str) -> ListPart[Any]:
    """The middle one of three parts of a list."""
    return part_of(rows * 3, len(rows), 2, "/account/security", name, name)


def security_pages(text: str, known: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The values of these templates, as `pages` has them. `known`: those of a person who is signed in."""
    entry = Sample(at=NOW, text=text, app=text, address=text, device=text)
    bare = Sample(at=NOW, text=text, app=None, address="", device="")
    passkey = Sample(credential=text, name=text, created_at=NOW, used_at=NOW)
    unused_passkey = Sample(credential=text, name=text, created_at=NOW, used_at=None)
    linked = Sample(name=text, title=text, type="github", label=text, linked_at=NOW, used_at=NOW, works=True)
    unused_link = Sample(
        **{**vars(linked), "type": "oidc", "label": "", "linked_at": None, "used_at": None, "works": False}
    )
    session = Sample(session_id=text, address=text, created_at=NOW, seen_at=NOW)
    other = Sample(session_id="other", address="", created_at=NOW, seen_at=NOW)
    security: dict[str, Any] = {
        **known,
        **{"devices": {text: [session, other], "curl": [other]}, "here_id": text},
        "passkeys_offered": True,
        "here": text,
        "wrong": "",
        **{"identities": several([linked, unused_link], "accounts"), "providers": PROVIDERS, "link_key": text},
        **{"sessions": several([session, other], "sessions"), "at_device": Counter({text: 2, "curl": 1})},
        **{"passkeys": several([passkey, unused_passkey], "passkeys"), "confirm_with": []},
    }
    setup = {**known, "signed_in": None, "why": None, "next": text, "next_query": "?next=%2F", "keep": True}
    setup |= {"sealed": text, "uri": "otpauth://totp/" + text, "secret": text, "picture": "<svg></svg>", "error": text}
    setup |= {"passkeys_offered": True, "passkey_error": None}
    directory = {**known, "signed_in": None, "provider": PROVIDERS[0], "why": None, "next": text, "login": text}
    return {
        "signin/directory.html": {**directory, "links": False, "confirms": False, "error": text},
        "signin/directory.html connect": {**directory, "links": True, "confirms": False, "error": ""},
        "signin/directory.html confirm": {**directory, "links": False, "confirms": True, "error": ""},
        "account/security.html": {
            **security,
            "errors": dict.fromkeys(
                ("confirm", "password", "passkeys", "identities", "authenticator", "recovery"), text
            ),
            "wrong": "code",
            "notice": None,
            "activity": [entry, bare],
            "ordinary": [bare, entry],
            "factors": Sample(
                proved=False,
                has_password=True,
                second=True,
                recovered=False,
                by_provider=False,
                asks_code=True,
                secret=b"sealed",
                since=NOW,
                codes=9,
                passkeys=(passkey, unused_passkey),
            ),
        },
        "account/security.html proved": {
            **security,
            "errors": {},
            "notice": text,
            "activity": [],
            "ordinary": [],
            "factors": Sample(
                proved=True,
                by_provider=False,
                has_password=True,
                second=True,
                secret=b"x",
                since=NOW,
                codes=10,
                passkeys=(passkey,),
            ),
        },
        "account/security.html changed": {
            **security,
            "errors": {},
            "notice": text,
            "activity": [],
            "ordinary": [],
            "passkeys_offered": False,
            "devices": {text: [session]},
            **{"sessions": part_of([session], 9, 1, "/account/security"), "identities": part_of((), 9, 1, text)},
            **{"passkeys": part_of((), 9, 1, text), "providers": []},
            "factors": Sample(
                proved=True,
                by_provider=False,
                has_password=False,
                second=False,
                secret=None,
                since=None,
                codes=0,
                passkeys=(),
            ),
        },
        "account/activity.html": {
            **known,
            "kinds": {"": text, "apps": text},
            "kind": "apps",
            "apps": [(text, text)],
            "client": text,
            "entries": [entry, bare],
            "first": "?kind=apps",
            "onward": "?kind=apps&before=1-0",
        },
        "account/confirm_yourself.html": {
            **known,
            "factors": Sample(
                asks_code=True, has_password=True, by_provider=False, secret=b"sealed", passkeys=(passkey,)
            ),
            "does": text,
            "action": "/developer/apps/x",
            "back": "/developer/apps/x",
            "kept": [("name", text)],
            "error": text,
            "wrong": "password",
            "passkeys_offered": True,
            **{"confirm_with": [], "link_key": text},
        },
        "account/security.html elsewhere": {
            **security,
            "errors": {},
            "notice": None,
            "activity": [],
            "ordinary": [],
            "confirm_with": PROVIDERS,
            "factors": Sample(
                **{"proved": False, "has_password": False, "second": False, "asks_code": False, "secret": None},
                **{"since": None, "codes": 0, "passkeys": (), "by_provider": False},
            ),
        },
        "account/confirm_yourself.html elsewhere": {
            **known,
            "factors": Sample(asks_code=False, has_password=False, by_provider=False, secret=None, passkeys=()),
            "does": text,
            "action": "/developer/apps/x/rotate",
            "back": "/developer/apps/x",
            "kept": [],
            "error": None,
            "wrong": "",
            "passkeys_offered": False,
            **{"confirm_with": PROVIDERS, "link_key": text},
        },
        "account/confirm_yourself.html first": {
            **known,
            "factors": Sample(asks_code=True, has_password=False, by_provider=True, secret=None, passkeys=()),
            "does": text,
            "action": "/developer/apps/x/rotate",
            "back": "/developer/apps/x",
            "kept": [],
            "error": None,
            "wrong": "",
            "passkeys_offered": False,
            **{"confirm_with": [], "link_key": text},
        },
        "account/authenticator.html": {
            **known,
            "sealed": text,
            "uri": "otpauth://totp/" + text,
            "secret": text,
            "picture": "<svg></svg>",
            "error": text,
        },
        "signin/setup.html": setup,
        "signin/setup.html first": {**setup, "error": None},
        "signin/setup.html passkey": {**setup, "error": None, "passkey_error": text},
        "signin/setup.html app alone": {**setup, "error": None, "passkeys_offered": False},
        "account/recovery.html": {**known, "codes": [text, text], "about": text, "notice": text, "onward": text},
    }
