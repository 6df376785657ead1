"""/signin/choose: which of the accounts that signed in with this browser to use. OpenID Connect Core 3.1.2.1."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import quote

from handlers.account.account_list import choose, list_account, listed, unlist
from handlers.account.authorize_address import address_of, pairs_of, request_print, wants_proof
from handlers.core.page import ACCOUNT, PageHandler, next_query, safe_next
from handlers.core.params import once, parse_pairs
from store.apps.registration import Registration
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile


def chooser_address(target: str, *, creates: bool = False) -> str:
    """The address of the page. `creates`: a person who wants none of the accounts makes one."""
    return f"/signin/choose?next={quote(target, safe='')}" + ("&create=1" if creates else "")


class ChooserHandler(PageHandler):
    """The page to choose an account. One is signed in at most; the others are only addresses."""

    async def get(self) -> None:
        """Lists the account that is signed in and those that were. Goes on to sign in if there are none."""
        query = once(parse_pairs(self.request.query))
        target, profile = safe_next(query.get("next")), await self.profile()
        others = listed(self)
        if profile:
            if not others or others[0].email != profile.email:
                # The list is older than the session, or the person has another address now.
                list_account(self, profile.user, profile.email)
            others = tuple(one for one in others if one.user != profile.user)
        elif not others:
            return self.see_other(f"/signin{next_query(target)}")
        self.render(
            "signin/choose.html",
            title=Phrase("Choose an account"),
            signed_in=profile,
            app=await self.app_of(target),
            others=others,
            onward_to=self.onward_with(profile, target) if profile else "",
            next=target,
            creates="1" if query.get("create") else "",
        )

    async def post(self) -> None:
        """Signs out, and asks for proof of the chosen account, or of any for none that is in the list."""
        self.check_same_origin()
        params = self.body()
        target = safe_next(params.get("next"))
        entry = params.get("account") or ""
        chosen = next((one for one in listed(self) if one.id == entry), None)
        if session := self.session():
            await self.store.sessions.end(session, self.visitor)
        self.write_session(None)
        choose(self, chosen, target)
        creates = not chosen and params.get("create") and self.site.signup != "off"
        self.see_other(f"/{'signup' if creates else 'signin'}{next_query(target)}")

    def onward_with(self, profile: Profile, target: str) -> str:
        """The target, for the person who is signed in. An authorization request that may ask which account to use gets
        a mark of the answer."""
        pairs = pairs_of(target)
        if not wants_proof(pairs):
            return target if target != "/" else ACCOUNT.href
        return address_of(pairs, self.store.progress.mark("account", request_print(pairs), profile.user))

    async def app_of(self, target: str) -> Registration | None:
        """The app that waits at the target."""
        with suppress(Refused):
            if client_id := once(pairs_of(target)).get("client_id"):
                return await self.store.apps.active(client_id)
        return None


class UnlistHandler(PageHandler):
    """Removes an account from the list of this browser."""

    async def post(self) -> None:
        """Shows the list again. The account itself stays as it is."""
        self.check_same_origin()
        params = self.body()
        unlist(self, params.get("account") or "")
        self.see_other(chooser_address(safe_next(params.get("next")), creates=bool(params.get("create"))))
