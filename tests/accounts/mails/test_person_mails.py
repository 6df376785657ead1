"""Mails caused by repeating a form: the windows of its table row bound them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from handlers.account.reauth_forms import check_posts
from handlers.core.route import WrongRoute
from handlers.routes import POSTS, ROUTES
from outbound.mail.mail import Mail
from outbound.mail.mailer import Mailer
from store import keys
from store.accounts.identities import UpstreamIdentity
from store.apps.client_secrets import secret_mark
from store.apps.webhooks import newest_mark
from tests.accounts.audit.test_person_posts import (
    API,
    API_FIELDS,
    APP_FIELDS,
    NEW_PASSWORD,
    OWN,
    OWN_API,
    PASSWORDS,
    Victim,
    sends,
)
from tests.accounts.mails.sign_in_acts import SIGN_IN_ACTS, stranger
from tests.accounts.mails.team_acts import TEAM_ACTS, Act, Prepare, form_of, owner
from tests.apps.logos.test_logo_http import change_logo
from tests.support.browser import email_links
from tests.support.browser.email_links import CHANGE, GRACE, RESET, Post, leave_few
from tests.support.browser.mailbox import until
from tests.support.browser.second_factors import APP, CONFIRM, PASSKEYS, SECURITY, Person
from tests.support.http.decision import DECIDE
from tests.support.http.driver import EMAIL, PASSWORD, Browser, fields_of
from tests.support.processes.engines import FakeClock
from tests.support.store.authenticator import Authenticator

pytestmark = pytest.mark.gen_test(timeout=120)

confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post

NEW = "new@example.com"
ACTS: dict[tuple[str, ...], Prepare] = {}
ENDS = ("-status", "-end-secret", "-logo-remove", "-team-remove", "-team-leave")
TAKEN_AND_ENDED = {
    name for name in POSTS if name.endswith(("-status", "-end-secret", "-logo-remove", "-team-remove", "-team-leave"))
}
"""Forms that complete something begun earlier, and so double the mails."""


def acts(*routes: str) -> Callable[[Prepare], Prepare]:
    """Names the rows whose repeated act sends mails."""

    def register(prepare: Prepare) -> Prepare:
        ACTS[routes] = prepare
        return prepare

    return register


@acts("developer-app")
async def _(post: Post) -> Act:
    ada, form = await owner(post)
    return lambda i: ada.browser.send(OWN, "POST", form={**form, **APP_FIELDS, "name": f"Mine {i % 2}"})


@acts("developer-logo", "developer-logo-remove")
async def _(post: Post) -> Act:
    ada, form = await owner(post)
    return lambda i: change_logo(ada.browser, OWN, form["_xsrf"], i)


def status_of(path: str) -> Prepare:
    async def prepare(post: Post) -> Act:
        ada, form = await owner(post)
        return lambda i: ada.browser.send(f"{path}/status", "POST", form={**form, "status": ("active", "off")[i % 2]})

    return prepare


acts("developer-status")(status_of(OWN))
acts("developer-api-status")(status_of(OWN_API))


@acts("developer-rotate", "developer-end-secret")
async def _(post: Post) -> Act:
    ada, form = await owner(post)

    async def act(number: int) -> None:
        app, _ = await post.service.store.apps.fresh("mine")
        assert app
        mark = {"mark": secret_mark(app.secrets[-1])}
        await ada.browser.send(f"{OWN}/{('end-secret', 'rotate')[number % 2]}", "POST", form={**form, **mark})

    return act


for team_routes, prepared in {**TEAM_ACTS, **SIGN_IN_ACTS}.items():
    acts(*team_routes)(prepared)


@acts("developer-webhooks")
async def _(post: Post) -> Act:
    ada, form = await owner(post)
    return lambda i: ada.browser.send(f"{OWN}/webhooks", "POST", form={**form, "url": f"https://m.example/{i % 2}"})


@acts("developer-webhook-secret")
async def _(post: Post) -> Act:
    ada, form = await owner(post)

    async def act(number: int) -> None:
        app, _ = await post.service.store.apps.fresh("mine")
        assert app
        mark = {"mark": newest_mark(app), "ends": "older"}
        await ada.browser.send(f"{OWN}/webhooks/rotate", "POST", form={**form, **mark})

    return act


@acts("developer-api")
async def _(post: Post) -> Act:
    ada, form = await owner(post)
    fields = {**form, **API_FIELDS}
    return lambda i: ada.browser.send(OWN_API, "POST", form={**fields, "name": f"Mine {i % 2}"})


@acts("developer-api-rotate", "developer-api-end-secret")
async def _(post: Post) -> Act:
    ada, form = await owner(post)

    async def act(number: int) -> None:
        api = await post.service.store.apis.fresh(API.client_id)
        assert api
        mark = {"mark": secret_mark(api.secrets[-1])}
        await ada.browser.send(f"{OWN_API}/{('end-secret', 'rotate')[number % 2]}", "POST", form={**form, **mark})

    return act


@acts("developer-api-delete")
async def _(post: Post) -> Act:
    ada, form = await owner(post)
    fields = {**form, **PASSWORDS, "confirm": API.name}

    async def act(number: int) -> None:
        apis = post.service.store.apis
        api = await apis.at(API.identifier) or (await apis.create(replace(API, owner=post.service.ada)))[0]
        fields["_xsrf"] = (await form_of(ada.browser))["_xsrf"]
        await ada.browser.send(f"/developer/apis/{api.client_id}/delete", "POST", form=fields)

    return act


@acts("developer-delete")
async def _(post: Post) -> Act:
    ada = await Victim.make(post.service, second=False)
    return lambda i: sends(ada.browser, ada, "developer-delete", PASSWORDS)


@acts("account-app-limit")
async def _(post: Post) -> Act:
    ada, form = await owner(post)
    path = "/account/apps/web-app/limit"
    return lambda i: ada.browser.send(path, "POST", form={**form, "dollars": "9" * (i % 2)})


@acts("decide")
async def _(post: Post) -> Act:
    browser = await post.service.signed_in()

    async def act(number: int) -> None:
        page = await browser.get(post.service.web.authorize_url(scope="profile credits:spend", prompt="consent"))
        if page.code == 200:
            await browser.submit(page, DECIDE, decision="allow", spend_dollars=str(number + 1))

    return act


@acts("account-security")
async def _(post: Post) -> Act:
    browser = await post.service.signed_in()

    async def act(number: int) -> None:
        now, then = (PASSWORD, NEW_PASSWORD)[:: -1 if number % 2 else 1]
        form = await form_of(browser, current_password=now, new_password=then)
        await browser.send(SECURITY, "POST", form=form)

    return act


@acts("account-email-confirm")
async def _(post: Post) -> Act:
    _, browser = await post.unconfirmed()
    form = await form_of(browser)
    return lambda i: browser.send("/account/email/confirm", "POST", form=form)


@acts("account-email-change")
async def _(post: Post) -> Act:
    browser = await post.service.signed_in()
    page = await browser.get(await change_link(post, browser))
    return lambda i: browser.submit(page, "/account/email/change")


async def change_link(post: Post, browser: Browser) -> str:
    form = await form_of(browser, email=NEW, current_password=PASSWORD)
    await browser.send("/account/email", "POST", form=form)
    return await post.link(NEW, CHANGE)


@acts("account-email-undo")
async def _(post: Post) -> Act:
    browser = await post.service.signed_in()
    await browser.submit(await browser.get(await change_link(post, browser)), "/account/email/change")
    stranger = post.service.browser()
    page = await stranger.get(await post.link(EMAIL, "Your e-mail address was changed"))
    return lambda i: stranger.submit(page, "/account/email/undo")


@acts("account-delete")
async def _(post: Post) -> Act:
    ada, form = await owner(post)
    fields = {**form, **PASSWORDS, "email": EMAIL}
    return lambda i: ada.browser.send("/account/delete", "POST", form=fields)


@acts("forgot")
async def _(post: Post) -> Act:
    known, stranger = await post.service.signed_in(), post.service.browser()
    return lambda i: post.forgot(browser=known if i % 2 else stranger)


@acts("reset")
async def _(post: Post) -> Act:
    browser = post.service.browser()
    await post.forgot(browser=browser)
    page = await browser.get(await post.link(EMAIL, RESET))
    return lambda i: browser.submit(page, "/reset", new_password=(NEW_PASSWORD, PASSWORD)[i % 2])


@acts("signin")
async def _(post: Post) -> Act:
    return lambda i: stranger(post, i).sign_in()


@acts("signin-second")
async def _(post: Post) -> Act:
    ada = await Person.arrive(post.service)
    await ada.add_app()

    async def act(number: int) -> None:
        browser = stranger(post, number)
        if "second" in (await browser.sign_in()).headers.get("Location", ""):
            page = await browser.get("/signin/second?next=/account")
            await browser.submit(page, "/signin/second", code=ada.codes.pop() if ada.codes else "000000")

    return act


@acts("signin-passkey")
async def _(post: Post) -> Act:
    ada = await Person.arrive(post.service)
    await ada.add_passkey()

    async def act(number: int) -> None:
        browser = stranger(post, number)
        options = await ada.options("/signin/passkey/options", browser, "/signin?next=/account")
        form = await browser.get("/signin?next=/account")
        await browser.submit(form, "/signin/passkey", credential=ada.device.get(options))

    return act


async def reauth_by_passkey(ada: Person) -> dict[str, str]:
    """Re-authenticates, and returns the fields of the next form."""
    options = await ada.options(f"{CONFIRM}/options")
    form = await form_of(ada.browser, credential=ada.device.get(options))
    await ada.browser.send(CONFIRM, "POST", form=form)
    return await form_of(ada.browser)


@acts("account-recovery")
async def _(post: Post) -> Act:
    ada = await Person.arrive(post.service)
    await ada.add_passkey()

    async def act(number: int) -> None:
        await ada.browser.send(f"{SECURITY}/recovery", "POST", form=await reauth_by_passkey(ada))

    return act


@acts("account-passkeys", "account-passkeys-remove")
async def _(post: Post) -> Act:
    """Adds and removes a passkey, confirmed by the first one."""
    ada = await Person.arrive(post.service)
    await ada.add_passkey()

    async def act(number: int) -> None:
        device = Authenticator(post.service.base_url)
        await reauth_by_passkey(ada)
        page = await ada.browser.get(SECURITY)
        if f'"{PASSKEYS}/options"' not in page.body.decode():
            return
        options = await ada.options(f"{PASSKEYS}/options")
        await ada.browser.submit(page, PASSKEYS, credential=device.create(options), name="Another")
        form = {**await reauth_by_passkey(ada), "credential": device.credential}
        await ada.browser.send(f"{PASSKEYS}/remove", "POST", form=form)

    return act


@acts("account-identity-remove")
async def _(post: Post) -> Act:
    ada = await Person.arrive(post.service)
    await ada.add_passkey()
    store, listed = post.service.store, keys.person(post.service.ada)["identities"]

    async def act(number: int) -> None:
        one = UpstreamIdentity("https://id.example", str(number))
        await store.client.hset(listed, one.name, one.text)
        form = {**await reauth_by_passkey(ada), "identity": one.name}
        await ada.browser.send(f"{SECURITY}/accounts/remove", "POST", form=form)

    return act


@acts("account-authenticator", "account-authenticator-remove")
async def _(post: Post) -> Act:
    """Removes and re-adds the authenticator app, confirmed by a passkey."""
    ada = await Person.arrive(post.service)
    await ada.add_passkey()

    async def act(number: int) -> None:
        await reauth_by_passkey(ada)
        page = await ada.browser.get(APP)
        if page.code == 200:
            ada.secret = ada.service.store.factors.open_secret(ada.service.ada, fields_of(page, APP)["secret"])
            await ada.browser.submit(page, APP, code=await ada.code(-1))
        await ada.browser.send(f"{APP}/remove", "POST", form=await reauth_by_passkey(ada))

    return act


def test_every_form_with_mails_is_submitted_repeatedly() -> None:
    repeated = [route for routes in ACTS for route in routes]
    assert sorted(repeated) == sorted(name for name, row in POSTS.items() if row.mailed)


@pytest.mark.slow
@pytest.mark.parametrize("routes", ACTS, ids="+".join)
async def test_each_forms_windows_bound_its_mails(clock: FakeClock, post: Post, routes: tuple[str, ...]) -> None:
    clock.stop()  # no window slides, however long this takes
    act = await ACTS[routes](post)
    to = GRACE if routes == ("account-email-confirm",) else EMAIL
    most = await leave_few(post, dict.fromkeys(group for route in routes for group in POSTS[route].windows))
    if TAKEN_AND_ENDED.intersection(routes):
        most = 2 * most + 1
    await post.settled()
    before = len(post.mails.to(to))
    for number in range(most + 5):
        await act(number)
    await post.settled()
    assert 0 < len(post.mails.to(to)) - before <= most


@pytest.mark.parametrize("routes", ACTS, ids="+".join)
async def test_a_forms_mails_count_for_the_account_at_any_address(
    post: Post, routes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    act = await ACTS[routes](post)
    posted: list[Mail] = []
    monkeypatch.setattr(Mailer, "post", lambda mailer, letter: posted.append(letter))
    await act(0)
    await until(lambda: not post.site.tasks)
    await act(1)
    await until(lambda: not post.site.tasks)
    account = await post.service.store.people.find(GRACE) or post.service.ada
    assert {letter.payer for letter in posted} == {account}


def test_a_form_with_mails_but_no_window_prevents_the_start() -> None:
    endless = [
        replace(route, post=route.post and replace(route.post, windows=()))
        if route.name == "developer-rotate"
        else route
        for route in ROUTES
    ]
    with pytest.raises(WrongRoute, match=r"developer-rotate.*without a window"):
        check_posts(endless)
