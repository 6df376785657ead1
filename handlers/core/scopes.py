"""What each scope means for the person who grants it: the consequences. SPEC 2.4."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from handlers.core.format import money
from store.apps.api_scopes import parse_qualified
from store.apps.apis import Apis
from store.oauth.resources import is_own, qualified_scopes


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
        return f"{self.title} ({self.api})" if self.api else self.title


SCOPE_WORDS: dict[str, ScopeWords] = {
    "openid": ScopeWords(
        "Sign you in",
        "It recognises you when you return, by an id. It learns nothing else about you from this.",
        False,
    ),
    "profile": ScopeWords(
        "See who you are",
        "Your name, e-mail address, picture and user id, so that it knows you when you return.",
        False,
    ),
    "email": ScopeWords(
        "See your e-mail address",
        "Your address, and whether you have confirmed it.",
        False,
    ),
    "groups": ScopeWords(
        "See your groups",
        "The names of the groups that the operator of this server has put you in, such as a team or a role. The app "
        "may decide by them what you can do there.",
        False,
    ),
    "credits:read": ScopeWords(
        "See your credit balance",
        "It sees how much you can still spend. It cannot spend any of it.",
        False,
    ),
    "credits:spend": ScopeWords(
        "Spend from your balance",
        "It can make AI calls that you pay for, without asking you each time, up to a monthly limit that you set, "
        "until you disconnect it.",
        True,
    ),
    "apps:read": ScopeWords(
        "See which other apps you use",
        "Their names, what they may do, and when they were last used.",
        False,
    ),
    "data:read": ScopeWords(
        "Read what it has stored for you",
        "It can read the documents it keeps here on your behalf. It never sees another app’s documents.",
        False,
    ),
    "data:write": ScopeWords(
        "Store documents for you",
        "It can create, change and delete its own documents here. It never touches another app’s documents.",
        True,
    ),
}


def asked_words(scope: str, groups: Sequence[str]) -> ScopeWords:
    """A scope that an app asks for, with what a person has of it now: their `groups`."""
    words = SCOPE_WORDS[scope]
    if scope == "groups":
        yours = f"You are in: {', '.join(groups)}." if groups else "You are in none now."
        return words._replace(detail=f"{words.detail} {yours}")
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
    scopes: Iterable[str], spend_limit: int | None, others: Mapping[str, ScopeWords] | None = None
) -> list[ScopeWords]:
    """What an app may do, in words; `spend_limit` is in micro-dollars a month, None for no limit. `others`: the words
    of scopes of APIs."""
    found = []
    for scope in scopes:
        words = SCOPE_WORDS.get(scope) or (others or {}).get(scope)
        if words and scope == "credits:spend":
            limit = "without a limit" if spend_limit is None else f"up to {money(spend_limit)} a month"
            words = words._replace(title=f"{words.title}, {limit}")
        if words:
            found.append(words)
    return found
