"""Repeated acts of an owner, of somebody in the team of an app, and of a person of a directory, for the tests of their
mails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from outbound.identity.providers import Providers
from store.accounts.identities import UpstreamIdentity
from store.accounts.signin.upstream import Arrival
from store.crypto.seal import Token, TokenKind
from tests.accounts.audit.test_person_posts import OWN, Victim
from tests.support.browser.email_links import Post
from tests.support.browser.second_factors import SECURITY
from tests.support.elsewhere.small_directory import FORM, ISSUER, PASSWORD, SUBJECT, small_directory
from tests.support.http.driver import EMAIL, Browser, fields_of
from tests.support.store.world import VISITOR

Act = Callable[[int], Awaitable[object]]
Prepare = Callable[[Post], Awaitable[Act]]


async def form_of(browser: Browser, **fields: str) -> dict[str, str]:
    return {"_xsrf": fields_of(await browser.get(SECURITY), "/signout")["_xsrf"], **fields}


async def owner(post: Post) -> tuple[Victim, dict[str, str]]:
    """Ada with an app of her own, who confirmed just now; and her XSRF token."""
    ada = await Victim.make(post.service, second=False)
    await ada.person.reauth()
    return ada, await form_of(ada.browser)


async def invite_and_remove(post: Post) -> Act:
    """Invites somebody, who joins, and removes them."""
    ada, form = await owner(post)
    store, email = post.service.store, "guest@example.com"
    guest = await post.service.add_person(email)
    session = store.sessions.open((await post.service.signed_in(email)).cookies["latchkey_session"])
    assert session

    async def act(number: int) -> None:
        if number % 2:
            await ada.browser.send(f"{OWN}/team/remove", "POST", form={**form, "member": guest})
            return
        await ada.browser.send(f"{OWN}/team", "POST", form={**form, "email": email, "role": "viewer"})
        app, _ = await store.apps.fresh("mine")
        assert app
        for one in await store.teams._invitations.of(app, await store.apps.now()):
            text = store.sealer.seal(Token(TokenKind.TEAM, one.by, "mine", one.id, 0))
            await store.teams.accept(session, text, VISITOR)

    return act


async def change_role(post: Post) -> Act:
    ada, form = await owner(post)
    to = f"{OWN}/team/role"
    role = ("viewer", "owner")
    return lambda i: ada.browser.send(to, "POST", form={**form, "member": ada.friend, "role": role[i % 2]})


async def join_and_leave(post: Post) -> Act:
    """Joins the team of an app of somebody else, and leaves it."""
    ada, form = await owner(post)
    await post.service.add_app("theirs", owner=ada.friend)

    async def act(number: int) -> None:
        if number % 2:
            await ada.browser.send("/developer/apps/theirs/team/leave", "POST", form=form)
            return
        link = await post.service.store.teams._invitations.make("theirs", EMAIL, "viewer", ada.friend)
        await ada.browser.send("/developer/invitation", "POST", form={**form, "link": link})

    return act


async def sign_in_with_directory(post: Post) -> Act:
    """Signs in with a directory, each time with another browser."""
    ada, store = await Victim.make(post.service, second=False), post.service.store
    await ada.person.reauth()
    session = store.sessions.open(ada.browser.cookies["latchkey_session"])
    assert session
    arrival = Arrival(UpstreamIdentity(ISSUER, SUBJECT), "", "Ada", "ada")
    await store.upstream.link(session, arrival, VISITOR)

    async def act(number: int) -> None:
        name = "".join(chr(ord("a") + int(digit)) for digit in str(number))
        browser = Browser(post.service.base_url, agent=f"Browser-{name}")
        async with small_directory() as provider:
            object.__setattr__(post.site, "providers", Providers((provider,)))
            await browser.get("/signin/with/company")
            await browser.submit(await browser.get(FORM), FORM, login="ada", password=PASSWORD)

    return act


TEAM_ACTS: dict[tuple[str, ...], Prepare] = {
    ("signin-directory",): sign_in_with_directory,
    ("developer-team", "developer-team-remove"): invite_and_remove,
    ("developer-team-role",): change_role,
    ("developer-invitation", "developer-team-leave"): join_and_leave,
}
