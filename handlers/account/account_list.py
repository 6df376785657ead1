"""The list of accounts that signed in with this browser, and the provider they used last, in its cookies."""

from __future__ import annotations

from hashlib import sha256

from handlers.core.page import PageHandler
from store.accounts.signin.listed_accounts import ListedAccount
from store.lifetimes import ACCOUNT_LIST, MINUTE

LIST_COOKIE = "accounts"
CHOSEN_COOKIE = "chosen"
PROVIDER_COOKIE = "provider"
CHOSEN_LASTS = 10 * MINUTE
_SIGN = "~"


def listed(page: PageHandler) -> tuple[ListedAccount, ...]:
    """The accounts in the list of this browser, newest first."""
    return page.store.listed_accounts.open(page.read_cookie(LIST_COOKIE))


def list_account(page: PageHandler, user: str, email: str) -> None:
    """Puts an account first in the list. What was chosen is done."""
    page.write_cookie(LIST_COOKIE, page.store.listed_accounts.with_account(listed(page), user, email), ACCOUNT_LIST)
    if page.read_cookie(CHOSEN_COOKIE):
        page.write_cookie(CHOSEN_COOKIE, None)


def unlist_person(page: PageHandler, user: str) -> None:
    """Removes a person from the list."""
    _keep(page, [one for one in listed(page) if one.user != user])


def unlist(page: PageHandler, entry: str) -> None:
    """Removes the entry with this id from the list."""
    _keep(page, [one for one in listed(page) if one.id != entry])


def choose(page: PageHandler, chosen: ListedAccount | None, target: str) -> None:
    """Has the sign-in page of this target fill in the address, or no address. The cookie names an entry of the list, so
    the address is in no log and no history."""
    page.write_cookie(CHOSEN_COOKIE, f"{chosen.id}{_SIGN}{_mark(target)}" if chosen else None, CHOSEN_LASTS)


def chosen_address(page: PageHandler, target: str) -> str:
    """The address that was chosen for this target; empty if none was."""
    entry, _, mark = (page.read_cookie(CHOSEN_COOKIE) or "").partition(_SIGN)
    if mark != _mark(target):
        return ""
    return next((one.email for one in listed(page) if one.id == entry), "")


def last_provider(page: PageHandler) -> str:
    """The name of the provider, if the last sign-in with this browser used one; anything that the browser sent, so look
    it up."""
    return page.read_cookie(PROVIDER_COOKIE) or ""


def note_provider(page: PageHandler, name: str) -> None:
    """Keeps the name of the provider of this sign-in, so that the sign-in page can mark it; "" for a password."""
    if name != last_provider(page):
        page.write_cookie(PROVIDER_COOKIE, name or None, ACCOUNT_LIST)


def _keep(page: PageHandler, kept: list[ListedAccount]) -> None:
    note_provider(page, "")  # it may have been that of a person who wants to leave no trace here
    page.write_cookie(LIST_COOKIE, page.store.listed_accounts.cookie(kept) or None, ACCOUNT_LIST)


def _mark(target: str) -> str:
    return sha256(target.encode()).hexdigest()[:22]
