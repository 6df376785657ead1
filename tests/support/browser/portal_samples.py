"""Sample data for the templates of the developer portal."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace as Sample
from typing import Any

from handlers.core.lists.paging import part_of
from handlers.core.scopes import SCOPE_WORDS, ScopeWords
from handlers.core.words.html import Html
from handlers.developer.api_boxes import ApiBoxes, ScopeBox
from handlers.developer.app_form import AppForm
from handlers.developer.apps import own_rows
from handlers.developer.log import entry_of
from handlers.developer.overview import endpoints_of
from handlers.developer.receivers import receivers
from handlers.developer.snippets import Snippet
from handlers.developer.team.role_names import ROLE_NAMES, ROLE_WORDS
from handlers.developer.usage import usage_charts
from handlers.developer.webhooks import EVENT_TEXTS, LISTED, STATES
from store.app_log import Cause, LoggedRefusal
from store.app_stats import AppFigures, Day
from store.apps.client_secrets import SecretNote
from store.apps.owners.invitations import Invitation
from store.apps.owners.owned import Deleted, Joined, Owned
from store.apps.owners.roles import ROLES, Member
from store.apps.owners.team import Teammate
from store.credits.prices import Price, TokenCounts
from store.credits.used import Total
from store.results import Profile
from store.webhooks.attempts import Attempt, WebhookExchange, WebhookResponse
from store.webhooks.deliveries import Delivery
from tests.support.browser.api_samples import api_pages
from tests.support.browser.english import SPOKEN
from tests.support.data.deletion_samples import WAYS

LOGO = "/logo/x.webp"
NOW = datetime(2026, 3, 5, 14, 7, 9, 250_000, tzinfo=UTC)


def portal_pages(text: str, known: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The values of the templates of the developer portal, as in `pages`."""
    code = Sample(code=text, page=text, picture="<svg></svg>")
    trying: dict[str, Any] = {**known, "steps": [], "wrong": None, "device": None}
    own: Any = Sample(
        signs_in_devices=True,
        client_id=text,
        name=text,
        active=True,
        status="active",
        public=False,
        has_secret=True,
        scopes=("profile",),
        profile="none",
        created_at=1_700_000_000_000,
        redirect_uris=(text,),
        jwks_uri="",
        owner=text,
    )
    own.webhook_url, own.verified, own.domain = text, True, text
    own.logo = own.logo_path = LOGO
    own.domain_misses, own.domain_until = 0, 1_700_000_000_000
    own.refresh_days = lambda most: most
    own.suspended_reason = ""
    off: Any = Sample(
        **{
            **vars(own),
            "active": False,
            "status": "off",
            "public": True,
            "has_secret": False,
            "webhook_url": "",
            "verified": False,
        }
    )
    off.domain, off.has_secret, off.logo, off.logo_path = "", False, "", ""
    disabled = Sample(**{**vars(off), "status": "disabled", "suspended_reason": text})
    errors = {
        name: [text, text]
        for name in (
            "name",
            "homepage",
            "redirect_uris",
            "scopes",
            "hosted_storage",
            "refresh_retry_seconds",
            "refresh_lifetime_days",
            "post_logout_redirect_uris",
            "backchannel_logout_uri",
            "auth_method",
            "jwks",
            "jwks_uri",
            "id_token_alg",
        )
    }
    wrong = AppForm(text, text, text, ("profile",), False, True, text, True, True, text, text, text, text)
    wrong.errors, wrong.auth_method, wrong.jwks, wrong.jwks_uri = errors, "private_key_jwt", text, text
    orders = ApiBoxes(
        text,
        text,
        (
            ScopeBox("api_x/orders:read", text, ScopeWords(text, text, False, text)),
            ScopeBox("api_x/orders:write", text, ScopeWords(text, "", True, text)),
        ),
    )
    left = ApiBoxes("", "", (ScopeBox("api_y/orders:read", text, ScopeWords(text, text, False)),))
    keyed = Sample(**{**vars(own), "has_secret": False, "scopes": (), "profile": text, "jwks_uri": text})
    day = Day(NOW.date(), 5, 1, 2000, 1, 0)
    used = Total(1, 2000, TokenCounts(5, 4, 3, 2, 1, web_search=1))
    page: dict[str, Any] = {
        **known,
        "words": SCOPE_WORDS,
        "apis": [orders, left],
        "apis_part": part_of([*orders.boxes, *left.boxes] * 3, 3, 2, "/developer/register", "apis", "apis"),
        "kind_open": False,
        "must_pkce": True,
        "domains": (text,),
        "domain": text,
        "wrong_domain": text,
        "wrong_logo": text,
        "logo_url": text,
        "proof_path": text,
        "brand": "",
        "app": own,
        "allowed": allowed_all,
        "form": AppForm(text, "", text),
        "secret": None,
        "fresh": False,
        "wrong": None,
        "notice": text,
        "notes": (SecretNote("0a1b2c3d", "aB_9", 1_700_000_000_000),),
        "used": {"0a1b2c3d": NOW.date()},
        "proof": text,
        "endpoints": endpoints_of("https://latchkey.example"),
        "snippets": [Snippet("curl", "curl", text, text), Snippet("python", "Python", text, text)],
        "figures": AppFigures(1, (day, day)),
        "charts": usage_charts((day, day), SPOKEN),
        "range_here": 7,
        "ranges": [(7, text), (30, text)],
        "csv": text,
        "sums": Sample(calls=1, limited=0, spent=2000),
        "by_model": part_of([(text, used)] * 3, 1, 2, "/x", "models_page", "models"),
        "models_csv": text,
        "names": {text: text},
        "prices": [(text, Price(text, 3, 4, 1, 2, 3, 10)), (text, Price(text, 3, 4))],
        "spends": True,
    }
    causes = (
        Cause("authorize", "invalid_request", f"{text} did not register the address.", text),
        Cause("call", "insufficient_scope", text, text),
    )
    at_home: Any = Sample(redirect_uris=("https://a.example/",))
    refusals = [LoggedRefusal(cause, 2, NOW, NOW) for cause in causes]
    steps = [Sample(title=text, words=text, sent=text, answer=text), Sample(title="x", words="x", sent="", answer="x")]
    somebody: Any = None
    listed: dict[str, Any] = {**known, "open": True, "full": False, "most": 20, "most_days": 0, "notice": None}
    listed |= {"apis": (), "role_names": ROLE_NAMES}

    def listed_of(owned: Owned) -> dict[str, Any]:
        rows, teams = own_rows(owned), (*owned.joined, *owned.joined)
        return {
            **{**listed, "owned": owned, "listed": part_of(rows, 99, 1, "/developer/apps", "apps", "list")},
            "joined": part_of(teams, len(owned.joined) or 1, 1, "/developer/apps", "teams", "teams"),
        }

    return {
        "developer/apps.html": {
            **listed_of(Owned(somebody, (own, off), (text,), (Deleted(text, text, NOW),))),
            "notice": text,
            "most_days": 7,
            "apis": (own, off),
        },
        "developer/apps.html team": {
            **listed_of(Owned(somebody, (), (), (), (Joined(own, "viewer"), Joined(off, "owner")))),
        },
        "developer/apps.html empty": {**listed_of(Owned(somebody, (), (), ())), "open": False},
        "developer/apps.html full": {**listed_of(Owned(somebody, (own,), (), ())), "full": True},
        "developer/register.html": {**page, "kind_open": True},
        "developer/register.html wrong": {**page, "kind_open": True, "form": wrong},
        "developer/overview.html": page,
        "developer/overview.html new": {**page, "secret": text, "fresh": True, "notice": None},
        "developer/overview.html key": {**page, "app": keyed, "snippets": []},
        "developer/settings.html": page,
        "developer/settings.html wrong": {**page, "form": wrong},
        "developer/settings.html wrong logo": {**page, "logo_url": ""},
        "developer/settings.html off": {**page, "app": off, "domains": (), "wrong_domain": None},
        "developer/settings.html key": {
            **page,
            "app": keyed,
            "apis": [],
            "apis_part": part_of((), 9, 1, ""),
            "form": AppForm(
                text, "", text, auth_method="private_key_jwt", jwks_uri=text, subject_type="pairwise", sector=text
            ),
        },
        "developer/settings.html disabled": {**page, "app": disabled, "domain": "", "wrong_domain": None},
        "developer/credentials.html": page,
        "developer/credentials.html second": {
            **page,
            "notes": (SecretNote("a"), SecretNote("b")),
            "secret": text,
            "wrong": text,
        },
        "developer/credentials.html key": {**page, "app": keyed, "notes": ()},
        "developer/credentials.html public": {**page, "app": off, "notes": ()},
        "developer/usage.html": page,
        "developer/usage.html empty": {
            **page,
            "charts": [],
            "sums": Sample(calls=0, limited=0, spent=0),
            "by_model": part_of((), 1, 1, ""),
            "spends": False,
        },
        "developer/log.html": {
            **page,
            "entries": [entry_of(at_home, one) for one in refusals],
            "part": part_of("abc", 1, 2, "/x"),
        },
        "developer/log.html empty": {**page, "entries": []},
        "developer/delete.html": {
            **known,
            "app": own,
            "typed": text,
            **WAYS,
            "errors": dict.fromkeys(("confirm", "password", "code", "passkey"), text),
        },
        **guide_pages(text, known, own),
        **webhook_pages(text, known),
        **api_pages(text, known),
        **team_pages(text, {**known, "app": own}),
        "developer/settings.html viewer": {**page, "allowed": allowed_none, "wrong_domain": None},
        "developer/try.html": {**trying, "app": own},
        "developer/try.html done": {**trying, "app": own, "steps": steps},
        "developer/try.html device": {**trying, "app": own, "device": code},
        "developer/try.html wrong": {**trying, "app": off, "wrong": text},
    }


def guide_pages(text: str, known: dict[str, Any], app: Sample) -> dict[str, dict[str, Any]]:
    """The values of the templates of the documentation, as in `pages`."""
    first, other = Sample(slug="", title=""), Sample(slug="a-library", title=text)
    page = {**known, "app": app, "name": "clients", "heading": text, "text": Html("<h2>Text</h2>")}
    return {
        "guides/guide.html": {**page, "part": first, "others": [other]},
        "guides/guide.html part": {**page, "part": other, "others": []},
        "guides/guide.html webhooks": {**page, "name": "webhooks", "part": first, "others": []},
    }


def allowed_all(act: str) -> bool:
    """What an owner may do."""
    return True


def allowed_none(act: str) -> bool:
    """What a viewer may change."""
    return False


def team_pages(text: str, known: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The values of the templates about the team of an app, as in `pages`."""
    me: Any = Profile("0" * 32, text, True, text, "")
    people = (
        Teammate(Member(me.user, "owner"), me),
        Teammate(Member("a" * 32, "developer", 1_700_000_000_000), me),
        Teammate(Member("b" * 32, "viewer", 1_700_000_000_000), None),
    )
    page: dict[str, Any] = {
        **known,
        "signed_in": me,
        "allowed": allowed_all,
        "people": people,
        "invitations": (Invitation("i" * 22, 1_700_000_000_000, "viewer", me.user, text, b""),),
        "roles": ROLES,
        "role_names": ROLE_NAMES,
        "role_words": ROLE_WORDS,
        "email": text,
        "role_here": "developer",
        "wrong_email": "",
        "wrong": None,
        "notice": text,
    }
    link: dict[str, Any] = {**known, "signed_in": me, "role_key": "owner", "role": text, "role_words": text}
    link |= {"inviter": me, "email": text}
    unconfirmed = {**link, "signed_in": me._replace(email_verified=False)}
    return {
        "developer/team.html": page,
        "developer/team.html wrong": {**page, "wrong_email": text},
        "developer/team.html refused": {**page, "wrong": text},
        "developer/team.html viewer": {**page, "allowed": allowed_none},
        "developer/team.html first": {**page, "people": people[:1], "invitations": ()},
        "links/team.html": {**link, "link": text, "here": text},
        "links/team.html first": {**unconfirmed, "link": text, "here": text},
    }


def webhook_pages(text: str, known: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The values of the templates about webhooks, as in `pages`."""
    app = Sample(client_id=text, name=text, active=True, webhook_url=text, backchannel_logout_uri=text)
    app.suspended_reason = ""
    then = 1_700_000_000_000
    waiting = Delivery(text, text, text, text, then, {text: text}, then, 2, 2, "pending", then + 9**14, then, 500, text)
    running = replace(waiting, next_attempt_at=None)
    failed = replace(waiting, state="failed", next_attempt_at=None, last_status=None)
    done = replace(waiting, state="delivered", next_attempt_at=None, last_status=204)
    new = replace(waiting, attempts=0, tries=0, last_attempt_at=None, last_status=None, last_error="")
    page: dict[str, Any] = {
        **known,
        "app": app,
        "allowed": allowed_all,
        "url": text,
        "wrong_url": None,
        "wrong": None,
        "secret": None,
        "mark": text,
        "two_sign": False,
        "notice": text,
        "deliveries": [new, waiting, running, failed, done],
        "onward": text,
        "before": "",
        "events": EVENT_TEXTS,
        "wants": [name for name, _ in EVENT_TEXTS],
        "newest": "",
        "listed": LISTED,
        "states": STATES,
        "type_here": "",
        "state_here": "",
        "receivers": receivers(),
        "posting": True,
    }
    one: dict[str, Any] = {**known, "app": app, "body": text, "most": 12, "notice": None, "url": text}
    one |= {"attempts": [], "chosen": None, "sent": "", "received": ""}
    told = ((text, text),)
    full = WebhookExchange(f"https://{text}", told, text.encode(), WebhookResponse(told, text.encode()), 1234)
    nothing = Attempt(1, then, WebhookExchange(), None, text)
    answered = Attempt(2, then, full, 500, text)
    hidden = Attempt(3, then, replace(full, answer=None), 500, text)
    attempted: dict[str, Any] = {**one, "attempts": [nothing, answered, hidden], "sent": text, "received": text}
    bare = Sample(**{**vars(app), "webhook_url": "", "backchannel_logout_uri": ""})
    return {
        "developer/webhooks.html": page,
        "developer/webhooks.html first": {**page, "app": bare, "deliveries": [], "onward": None, "notice": None},
        "developer/webhooks.html new": {**page, "secret": text, "two_sign": True, "notice": None},
        "developer/webhooks.html wrong": {**page, "wrong_url": text},
        "developer/webhooks.html refused": {**page, "wrong": text, "posting": False},
        "developer/webhooks.html older": {**page, "before": text},
        "developer/webhooks.html filtered": {**page, "deliveries": [], "type_here": "ping", "state_here": "failed"},
        "developer/delivery.html": {**attempted, "one": waiting, "notice": text, "chosen": answered},
        "developer/delivery.html binary": {**attempted, "one": waiting, "chosen": answered, "received": None},
        "developer/delivery.html private": {**attempted, "one": waiting, "chosen": hidden},
        "developer/delivery.html unsent": {**attempted, "one": waiting, "chosen": nothing},
        "developer/delivery.html running": {**one, "one": running},
        "developer/delivery.html failed": {**one, "one": failed},
        "developer/delivery.html done": {**one, "one": done},
        "developer/delivery.html logout": {**one, "one": waiting, "most": None},
    }
