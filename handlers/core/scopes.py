"""What each scope means for the person who grants it: the consequences. SPEC 2.4."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from handlers.core.words.sentences import sentences
from handlers.core.words.wording import Wording
from store.apps.api_scopes import parse_qualified
from store.apps.apis import Apis
from store.oauth.resources import is_own, qualified_scopes
from store.phrases import Phrase

CLAIM_SCOPES = {
    **{"name": "profile", "picture": "profile"},
    **{"email": "email", "email_verified": "email", "groups": "groups"},
}
"""The scope that gives a claim: a request for the claim is a request for the scope, which the person sees."""


class ScopeWords(NamedTuple):
    """A scope on the consent page. `dangerous` marks scopes that can cost the person something; `api` is the name of
    the API that the scope belongs to, empty for Latchkey itself."""

    title: str
    detail: str
    dangerous: bool
    api: str = ""

    @property
    def whole(self) -> str:
        """The title where the API is not named nearby."""
        return Phrase("%(scope)s (%(api)s)", scope=self.title, api=self.api) if self.api else self.title


SCOPE_WORDS: dict[str, ScopeWords] = {
    "openid": ScopeWords(
        Phrase("Sign you in"),
        Phrase("It recognizes you by an ID when you return, and learns nothing else about you."),
        False,
    ),
    "profile": ScopeWords(
        Phrase("See who you are"),
        Phrase("Your name, e-mail address, picture and user ID, so that it recognizes you when you return."),
        False,
    ),
    "email": ScopeWords(
        Phrase("See your e-mail address"),
        Phrase("Your address, and whether you have confirmed it."),
        False,
    ),
    "groups": ScopeWords(
        Phrase("See your groups"),
        Phrase(
            "The groups that the operator of this server put you in, such as a team or a role. The app may use them "
            "to decide what you can do there."
        ),
        False,
    ),
    "credits:read": ScopeWords(
        Phrase("See your credit balance"),
        Phrase("How much you can still spend, and what its own calls used. It can’t spend any of it."),
        False,
    ),
    "credits:spend": ScopeWords(
        Phrase("Spend from your balance"),
        Phrase(
            "It can make AI calls that you pay for without asking each time, up to a monthly limit that you set, "
            "until you disconnect it."
        ),
        True,
    ),
    "apps:read": ScopeWords(
        Phrase("See which other apps you use"),
        Phrase("Their names, what they can do, and when you last used them."),
        False,
    ),
    "data:read": ScopeWords(
        Phrase("Read what it has stored for you"),
        Phrase("It can read the documents that it stores here for you. It never sees other apps’ documents."),
        False,
    ),
    "data:write": ScopeWords(
        Phrase("Store documents for you"),
        Phrase("It can create, change and delete its own documents here. It never touches other apps’ documents."),
        False,
    ),
}


WITHIN_A_BUDGET = Phrase("It can make AI calls that you pay for without asking each time, up to the amount below.")
"""The detail of spending for an app that asks for a budget."""


def asked_words(scope: str, groups: Sequence[str]) -> ScopeWords:
    """A scope that an app asks for, with what a person has of it now: their `groups`."""
    words = SCOPE_WORDS[scope]
    if scope == "groups":
        yours = Phrase("You’re not in any groups now.")
        if groups:
            yours = Phrase("Your groups: %(groups)s.", groups=", ".join(groups))
        return words._replace(detail=sentences(words.detail, yours))
    return words


async def api_words(apis: Apis, scopes: Iterable[str]) -> dict[str, ScopeWords]:
    """The words of stored scopes that belong to APIs, without those that are no longer there. Raises
    StoreUnavailable."""
    theirs = [scope for scope in scopes if not is_own(scope)]
    ids = sorted({parse_qualified(scope).api for scope in theirs})
    found = [api for api in await asyncio.gather(*(apis.active(one) for one in ids)) if api]
    return {
        qualified: ScopeWords(scope.title, scope.detail, scope.care, api.name)
        for api in found
        for qualified, scope in zip(qualified_scopes(api), api.scopes, strict=True)
        if qualified in theirs
    }


def allowed(
    scopes: Iterable[str],
    spend_limit: int | None,
    wording: Wording,
    others: Mapping[str, ScopeWords] | None = None,
    *,
    budgeted: bool = False,
) -> list[ScopeWords]:
    """What an app may do, in words; `spend_limit` is in micro-dollars a month, None for no limit. `others`: the words
    of scopes of APIs; `budgeted`: it has a budget."""
    found = []
    for scope in scopes:
        words = SCOPE_WORDS.get(scope) or (others or {}).get(scope)
        if words and scope == "credits:spend":
            title = Phrase("%(scope)s, without a limit", scope=words.title)
            if budgeted and spend_limit is None:
                title = Phrase("%(scope)s, within a budget", scope=words.title)
            if spend_limit is not None:
                limit = wording.money(spend_limit)
                title = Phrase("%(scope)s, up to %(limit)s a month", scope=words.title, limit=limit)
            words = words._replace(title=title)
        if words:
            found.append(words)
    return found
