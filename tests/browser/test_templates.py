"""Every template, rendered by Tornado with sample data and parsed as HTML."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from handlers.core.format import ago, day, exact, initial, iso, money_field, web_link
from handlers.core.person_posts import ReauthRule
from handlers.core.scopes import SCOPE_WORDS
from handlers.routes import POSTS, ROUTES
from tests.support.browser.pages import ROOT, Element, pages, render
from tests.support.browser.portal_samples import NOW
from tests.support.lists.offenders import each

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>"

every_page = each("name", pages(""))


def test_every_template_is_rendered_here() -> None:
    parts = (
        *("layout", "brand_link", "account_tabs", "app_badge", "activity_rows", "app_mark", "chart", "chart_ranges"),
        *("new_authenticator", "pager", "passkey_words", "password_and_code", "provider_mark", "confirm_elsewhere"),
        *("used_rows", "way_back", "part_pager"),
    )
    shared = {
        *(f"developer/deliveries/{part}.html" for part in ("facts", "exchanges", "headers", "state")),
        "developer/form.html",
        "developer/delete_form.html",
        "developer/logo_form.html",
        "mail/layout.html",
        "signin/address_fields.html",
        *("signin/providers.html", "account/identities.html"),
        "account/budget.html",
        "account/handed_on.html",
        "account/budget_field.html",
        "oauth/asking_device.html",
        "oauth/budgets.html",
        "signin/why.html",
        "signin/keep.html",
    }
    shared |= {f"developer/{part}.html" for part in ("app_head", "app_tabs", "copying", "secret_once", "secret_rows")}
    shared |= {f"base/{part}.html" for part in parts}
    shared |= {f"admin/{part}.html" for part in ("frame", "person_acts", "person_link", "bulk_boxes", "chips")}
    folder = ROOT / "templates"
    kept = {path.relative_to(folder).as_posix() for path in folder.rglob("*.html")}
    assert kept - shared == {name.split()[0] for name in pages("")}


TO_AN_APP = ("oauth/form_post.html", *(f"oauth/{name}.html form_post" for name in ("leaving", "step_up", "keep_out")))
"""Their forms go to an app. They hold the answer and nothing else of this server."""


@every_page
def test_hostile_text_is_escaped(name: str) -> None:
    page = render(name, HOSTILE)
    assert HOSTILE in page.all("title")[0].text
    assert not page.all("style", "iframe", "object", "base")
    assert not any(script.text for script in page.all("script"))
    assert all("alert" not in image.get("src") for image in page.all("img"))
    for element in page.elements:
        assert not [key for key in element.attributes if key == "style" or key.startswith("on")]
        # A link to a file in itself: a browser saves it, and opens no page.
        saved = "download" in element.attributes and element.get("href").startswith("data:text/plain;charset=utf-8,")
        for key in ("src", "action") if saved else ("href", "src", "action"):
            assert not element.get(key).lower().startswith(("javascript:", "data:", "//"))


@every_page
def test_it_loads_only_what_the_content_security_policy_allows(name: str) -> None:
    page = render(name)
    loaded = [link.get("href") for link in page.all("link")] + [image.get("src") for image in page.all("img")]
    loaded += [script.get("src") for script in page.all("script")]
    vendored = r"vendor/swagger-ui/swagger-ui(-bundle\.js|\.css)"
    known = rf"/static/(latchkey\.css|docs\.css|favicon\.svg|\w+\.js|{vendored})\?v=\w+|/picture/x\.svg|/logo/x\.webp"
    assert all(re.fullmatch(known, address) for address in loaded)
    if not name.startswith(TO_AN_APP):
        assert {form.get("action").split("/")[0] for form in page.all("form")} <= {""}


@every_page
def test_pages_are_accessible_to_screen_readers(name: str) -> None:
    page = render(name)
    assert page.all("html")[0].get("lang") == "en"
    assert [len(page.all(tag)) for tag in ("main", "h1", "header")] == [1, 1, 1]
    ids = [element.get("id") for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    labelled = {label.get("for") for label in page.all("label")}
    for field in page.all("input", "textarea"):
        if field.get("type") != "hidden":
            wrapped = any(parent.tag == "label" for parent in field.parents)
            assert wrapped or field.get("id") in labelled or field.get("aria-label")
    for element in page.elements:
        for key in ("aria-describedby", "aria-labelledby", "for"):
            assert set(element.get(key).split()) <= set(ids)
    assert all("alt" in image.attributes for image in page.all("img"))
    assert all(button.text.strip() for button in page.all("button", "summary", "a"))


@every_page
def test_every_form_posts_with_its_xsrf_token_and_repeats_no_field(name: str) -> None:
    page = render(name)
    for form in page.all("form"):
        if form.get("role") == "search" or (form.get("action") == "/admin/people/bulk" and form.get("method") == "get"):
            assert form.get("method") == "get"
            assert not [one for one in page.inside(form, "input") if one.get("type") == "hidden"]
            continue
        assert form.get("method") == "post"
        fields = page.inside(form, "input", "textarea")
        names = [field.get("name") for field in fields if field.get("type") != "radio"]
        names += {field.get("name") for field in fields if field.get("type") == "radio"}  # of which one is sent
        assert names.count("_xsrf") == (0 if name.startswith(TO_AN_APP) and "state" in names else 1)
        assert len(names) == len(set(names)), "a repeated parameter is refused"


@each("name", [pytest.param(name, id=name) for name, values in pages("").items() if values["signed_in"]])
def test_signing_out_takes_one_click(name: str) -> None:
    page = render(name)
    bar = page.all("header")[0]
    assert "Ada & Co" in bar.text
    assert [form.get("action") for form in page.inside(bar, "form")] == ["/signout"]
    assert "/account" in [link.get("href") for link in page.inside(bar, "a")]


@pytest.mark.spec("2.4")
def test_consent_explains_each_scope_and_allows_unticking() -> None:
    page = render("oauth/consent.html", app_domain="evil.example")
    form = next(form for form in page.all("form") if form.get("action") == "/api/oauth/authorize")
    boxes = [field for field in page.inside(form, "input") if field.get("type") == "checkbox"]
    offered = {name: words for name, words in SCOPE_WORDS.items() if name != "openid"}
    assert {f"scope:{name}" for name in offered} <= {box.get("name") for box in boxes}
    assert all("checked" in box.attributes and box.get("value") == "on" for box in boxes)
    rows = {box.get("name"): row.text for row in page.inside(form, "li") for box in page.inside(row, "input")}
    for name, words in offered.items():
        row = rows[f"scope:{name}"]
        assert words.title in row
        assert words.detail in row
        assert ("Take care" in row) == words.dangerous
        assert ("Already allowed" in row) == (name == "profile")
    assert "evil.example" in [strong.text for strong in page.all("strong")]


def test_enter_on_the_consent_page_does_not_submit() -> None:
    page = render("oauth/consent.html")
    form = next(form for form in page.all("form") if form.get("action") == "/api/oauth/authorize")
    first, *buttons = page.inside(form, "button")
    assert {"disabled", "hidden"} <= set(first.attributes)
    assert [(button.get("name"), button.get("value")) for button in buttons] == [
        ("decision", "deny"),
        ("decision", "allow"),
    ]


ONE_CLICK = {
    "confirm": "its page has a mailed link for an address",
    "account-email-confirm": "a mail to the person",
    "account-picture-remove": "shown again by an upload",
    "developer-logo": "without a file and an address it is refused",
    "developer-logo-remove": "shown again by an upload",
    "account-passkey-offer": "passkeys are added in another place",
    "account-credit-mails": "another choice, in the same place; mails about what an app may do come all the same",
    "account-language": "another choice, in the same place",
    "account-app-revoke": "an app has less",
    "account-app-pause": "an app has less",
    "account-app-end": "an app has less",
    "account-session-end": "a device has less",
    "account-sessions-end": "devices have less",
    "developer-invitation": "its page has a mailed link for an address",
    "developer-team-withdraw": "an invitation is sent again",
    "account-email-change": "its page has a mailed link for an address",
    "developer-try": "the consent page comes next",
    "device": "the consent page comes next",
    "developer-webhook-test": "a test event",
    "developer-delivery-again": "an event again",
}
"""Forms that one click sends and a session allows, and why clickjacking them gains nothing."""


DESTRUCTIVE = {
    *("account-app-revoke", "account-data-delete", "account-document-delete", "account-delete"),
    *("account-picture-remove", "account-passkeys-remove", "account-authenticator-remove", "account-recovery"),
    "account-identity-remove",
    *("developer-delete", "developer-api-delete", "developer-end-secret", "developer-api-end-secret"),
    "developer-logo-remove",
    *("developer-team-remove", "developer-team-leave"),
    *("console-suspend", "console-reset-factors", "console-delete", "console-app-status", "console-bulk"),
    *("console-plan-deletion", "console-disconnect", "console-unlink"),
    *("console-app-team-remove", "console-api-status", "console-api-secret"),
}
"""Forms whose buttons are red, because nobody can take back what they do, or only with effort. Each asks once."""


CONTINUED = {
    *(("developer/apps.html", "developer-delete"), ("developer/apps.html full", "developer-delete")),
    ("admin/app.html off", "console-app-status"),
    ("admin/api.html off", "console-api-status"),
}
"""Forms that go on with something that was asked for already, or undo it."""
OF_THEIR_OWN = ("account-delete", "developer-delete", "developer-api-delete", "console-bulk")
"""Red forms with a page of their own, which says what they would do."""
SHOWN_AGAIN = ("admin/person.html wrong",)
"""States of pages that show a red form again, unfolded, with its error."""


def test_red_buttons_are_for_danger_and_ask_once() -> None:
    red, asked = set(), set()
    for name in pages(""):
        page = render(name)
        for form in page.all("form"):
            if form.get("method") == "get":
                continue
            route = route_of(form.get("action"))
            if any("danger" in one.get("class").split() for one in (*page.inside(form, "button"), *page.sending(form))):
                red.add(route)
            elif route in DESTRUCTIVE and (name, route) not in CONTINUED:
                asked.add(f"{route} on {name} has no red button")
            # On a page of its own a deletion asks for a name or address to be typed.
            if route in DESTRUCTIVE and route not in OF_THEIR_OWN:
                if name.startswith(SHOWN_AGAIN) or (name, route) in CONTINUED:
                    continue
                if not all(unfolds(one) for one in page.sending(form) or [form]):
                    asked.add(f"{route} on {name} does not ask")
    assert red == DESTRUCTIVE
    assert not asked


def unfolds(element: Element) -> bool:
    """Whether an element is in a box that a person has to unfold."""
    folded = any(one.tag == "details" and "open" not in one.attributes for one in element.parents)
    return folded and any("inner" in one.get("class").split() for one in (element, *element.parents))


def route_of(action: str) -> str:
    """The route of a form's address; empty for an app's."""
    path = urlsplit(action).path
    paths = {route.name: re.sub(r"\([^)]*\)", "[^/]+", route.pattern) for route in ROUTES if route.post}
    return next((name for name, pattern in paths.items() if re.fullmatch(pattern, path)), "")


def test_clickjacked_clicks_grant_nothing() -> None:
    seen, unhurried = set(), set()
    for name in pages(""):
        page = render(name)
        for form in page.all("form"):
            action = urlsplit(form.get("action")).path
            if not action.startswith("/") or form.get("role") == "search" or form.get("method") == "get":
                continue  # an app's address, or a form that changes nothing
            route = route_of(action)
            typed = [field for field in page.inside(form, "input", "textarea") if "required" in field.attributes]
            if typed or POSTS[route].reauth is not ReauthRule.NONE or not POSTS[route].session:
                continue
            seen.add(route)
            if any("data-unhurried" in button.attributes for button in page.inside(form, "button")):
                unhurried.add(route)
                assert any("/static/unhurried.js" in script.get("src") for script in page.all("script"))
    assert unhurried == {"decide", "account-app-resume"}
    assert seen - unhurried <= set(ONE_CLICK), seen - unhurried - set(ONE_CLICK)
    assert set(ONE_CLICK) <= seen, set(ONE_CLICK) - seen


def test_an_invalid_amount_does_not_prevent_denying() -> None:
    deny = next(button for button in render("oauth/consent.html").all("button") if button.get("value") == "deny")
    assert "formnovalidate" in deny.attributes


@pytest.mark.parametrize(("micro", "shown"), [(5_000_000, "5.00"), (None, ""), (0, "0.00")])
def test_the_limit_is_next_to_the_spending_scope(micro: int | None, shown: str) -> None:
    page = render("oauth/consent.html", amount=money_field(micro))
    field = next(field for field in page.all("input") if field.get("name") == "spend_dollars")
    assert field.get("value") == shown
    row = next(parent for parent in field.parents if parent.tag == "li")
    assert SCOPE_WORDS["credits:spend"].title in row.text
    assert "If you leave it empty, there’s no limit" in row.text
    # A click on the amount must not untick the scope.
    label = next(parent for parent in field.parents if parent.tag == "label")
    assert [box.get("type") for box in page.inside(label, "input")] == ["text"]


def test_errors_are_associated_with_their_fields() -> None:
    page = render("signin/signin.html", error="Not that password.")
    alert = next(element for element in page.elements if element.get("role") == "alert")
    fields = [field for field in page.all("input") if field.get("id") in ("email", "password")]
    assert [field.get("aria-describedby") for field in fields] == [alert.get("id")] * 2
    assert [field.get("autocomplete") for field in fields] == ["username webauthn", "current-password"]
    assert page.all("title")[0].text.startswith("Error: ")


def test_an_invitation_fixes_the_address() -> None:
    fields = {field.get("name"): field for field in render("signin/signup.html invited", "x").all("input")}
    assert fields["invite"].get("value") == "x"
    assert "readonly" in fields["email"].attributes
    assert "invite" not in {field.get("name") for field in render("signin/signup.html").all("input")}


@pytest.mark.parametrize(
    ("mode", "words"), [("signin/signin.html", "/signup?next=%2F"), ("signin/signup.html", "/signin?next=%2Fa%3Fb")]
)
def test_the_target_is_kept_between_sign_in_and_sign_up(mode: str, words: str) -> None:
    page = render(mode, next="/a?b")
    assert words in [link.get("href") for link in page.all("a")]
    assert "/a?b" in [field.get("value") for field in page.all("input") if field.get("name") == "next"]


def test_disconnecting_asks_for_confirmation_and_explains_it() -> None:
    page = render("account/apps.html", "a/b?c")
    form = next(form for form in page.all("form") if form.get("action").endswith("/revoke"))
    assert form.get("action") == "/account/apps/a%2Fb%3Fc/revoke"
    details = next(parent for parent in form.parents if parent.tag == "details")
    assert "open" not in details.attributes
    assert "loses access immediately" in details.text
    assert "30\u00a0days" in details.text


@every_page
def test_every_css_class_has_a_rule(name: str) -> None:
    sheets = "".join(path.read_text() for path in (ROOT / "static").glob("*.css"))
    rules = set(re.findall(r"\.([a-z][a-z-]*)", sheets))
    assert {word for element in render(name).elements for word in element.get("class").split()} <= rules


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@each("scheme", ["light", "dark"])
@each(
    ("front", "back", "least"),
    [
        *[
            (front, back, 4.5)
            for front in ("ink", "muted", "accent", "danger")
            for back in ("page", "surface", "sunken")
        ],
        ("on-accent", "accent", 4.5),
        ("on-danger", "danger", 4.5),
        ("danger", "danger-wash", 4.5),
        ("accent", "accent-wash", 4.5),
        ("caution", "caution-wash", 4.5),
        ("field-line", "surface", 3),
    ],
)
def test_contrast_meets_wcag_aa(scheme: str, front: str, back: str, least: float) -> None:
    blocks = re.findall(r":root \{(.*?)\}", (ROOT / "static" / "latchkey.css").read_text(), re.DOTALL)
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", blocks[scheme == "dark"]))
    light, dark = sorted((luminance(colours[front]), luminance(colours[back])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= least


@each(
    ("passed", "words"),
    [
        (timedelta(seconds=44), "just now"),
        (timedelta(seconds=45), "1 minute ago"),
        (timedelta(minutes=59, seconds=59), "59 minutes ago"),
        (timedelta(hours=1), "1 hour ago"),
        (timedelta(hours=47), "1 day ago"),
        (timedelta(days=30), "30 days ago"),
        (timedelta(days=31), "2 February 2026"),
        (-timedelta(seconds=44), "just now"),
        (-timedelta(minutes=5), "in 5 minutes"),
        (-timedelta(days=40), "14 April 2026"),
    ],
)
def test_relative_times(passed: timedelta, words: str) -> None:
    assert ago(NOW - passed, NOW) == words


def test_times_are_exact_and_in_utc() -> None:
    assert (day(NOW), exact(NOW)) == ("5 March 2026", "5 March 2026, 14:07:09 UTC")
    assert iso(NOW) == "2026-03-05T14:07:09.250Z"
    with pytest.raises(ValueError, match="time zone"):
        ago(NOW.replace(tzinfo=None), NOW)


@each(
    ("address", "safe"),
    [
        ("https://a.example/x", True),
        ("http://localhost:8090", True),
        ("JavaScript:alert(1)", False),
        ("data:text/html,x", False),
        ("//a.example", False),
        ("https://[", False),
        ("https:", False),
        ("", False),
        (None, False),
    ],
)
def test_only_web_addresses_become_links(address: str | None, safe: bool) -> None:
    assert web_link(address) == (address if safe else None)


def test_a_name_without_letters_still_has_a_badge() -> None:
    assert [initial(name) for name in ("quill", " (é)", "!!", "", "ßa")] == ["Q", "É", "·", "·", "S"]
