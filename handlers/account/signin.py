"""/signin, /signup and /signout."""

from __future__ import annotations

from hashlib import sha256

from handlers.account.account_list import chosen_address, last_provider, list_account, listed, note_provider
from handlers.account.authorize_address import address_of, pairs_of, request_print, wants_proof
from handlers.account.pending_target import (
    ACCOUNT_PAGE,
    PendingTarget,
    Reason,
    email_for,
    goes_on,
    landing,
    must_set_up,
    pending,
)
from handlers.account.setup.half_signin import HALF_COOKIE, KEEP, ask_step
from handlers.core import mails
from handlers.core.base import DEVICE_COOKIE
from handlers.core.page import PageHandler, next_query, safe_next
from handlers.core.params import Params, once, parse_pairs
from outbound.identity.providers import Provider
from store.accounts.people import Invited
from store.accounts.signin.sessions import SecondStepNeeded, SignedIn
from store.crypto.passwords import MIN_PASSWORD_LENGTH
from store.lifetimes import DEVICE, INVITE
from store.names import MAX_EMAIL_BYTES, check_person_name, normalise_email
from store.phrases import Phrase
from store.refused import Refused, SignedOut, Suspended, reason_of

CHALLENGE_COOKIE = "challenge"
GOING_COOKIE = "going"
CREATED_BY_OPERATOR = Phrase("Only the operator of this server can create accounts. Ask them for one.")
INVITATION_OVER = Phrase("This invitation has expired or was already used. Only the newest one works.")
FROM_ELSEWHERE = Phrase("Accounts here are created by signing in with one of these.")
OTHER_DOMAIN = Phrase("Accounts here need an e-mail address of %(domains)s.")
LINK_OVER = Phrase("This link has expired or was already used. Only the newest link works.")


def _mark(target: str) -> str:
    return sha256(target.encode()).hexdigest()


class SignInPage(PageHandler):
    """Shared by sign-in, its second step and sign-up: the next page, and the right to go there."""

    def query(self) -> Params:
        """The parameters in the query."""
        return once(parse_pairs(self.request.query))

    def remember_going(self, target: str, lasts: int) -> None:
        """Notes in this browser for `lasts` ms that a link it requested may lead on to `target`."""
        self.write_cookie(GOING_COOKIE, _mark(target), lasts)

    def going_on(self, target: str) -> str:
        """The next page after a mailed link: `target` in the browser that requested the link, else "/". Somebody else
        who requests a link must not choose where it leads."""
        return safe_next(target) if self.read_cookie(GOING_COOKIE) == _mark(safe_next(target)) else "/"

    async def replace_session(self, found: SignedIn) -> None:
        """Signs this browser in. Its earlier session ends (RFC 9700 4.7, session fixation)."""
        before = self.session()
        if before:
            # The same person stays signed in to apps in this browser.
            after = self.store.sessions.open(found.cookie) if before.user == found.user else None
            await self.store.sessions.end(before, self.visitor, successor=after)
        self.write_session(found.cookie)
        self.write_cookie(DEVICE_COOKIE, found.device, DEVICE)
        list_account(self, found.user, found.warned.addresses[0])
        mails.new_sign_in(self.site, found, self.visitor)
        self.write_cookie(HALF_COOKIE, None)

    async def signed_in(self, found: SignedIn, target: str) -> None:
        """Signs this browser in and goes on, to the account if nothing else waits. Every way to sign in ends here."""
        await self.replace_session(found)
        self.see_other(landing(self.proved(target, found)))

    async def went_on(self, target: str) -> bool:
        """Sends a person who is signed in already to the target."""
        if not goes_on(target) or await self.profile_if_known() is None:
            return False
        self.see_other(landing(target))
        return True

    def proved(self, target: str, found: SignedIn) -> str:
        """The target. The address of an authorization request that wants proof of a sign-in gets a mark."""
        pairs = pairs_of(target)
        if not wants_proof(pairs):
            return target
        return address_of(pairs, self.store.progress.mark("sign-in", request_print(pairs), found.user, found.at))

    async def show_sign_in(
        self,
        target: str,
        email: str = "",
        error: str | None = None,
        passkey_error: str | None = None,
        *,
        keep: bool = False,
        hint: str = "",
        trouble: str = "",
    ) -> None:
        """The sign-in page, with the error if there is one, a hint, or trouble that is not about what was typed."""
        why = await self.reason_for(target)
        self.render(
            "signin/signin.html",
            title=Phrase("Sign in"),
            signed_in=await self.profile_if_known(),
            next=target,
            email=email
            or chosen_address(self, target)
            or email_for(self.store.links, target, self.query().get("link")),
            choosable=bool(listed(self)),
            why=why,
            keep=keep,
            error=error,
            hint=hint,
            trouble=trouble,
            passkey_error=passkey_error,
            passkeys=self.site.relying_party is not None,
            signup_open=self.site.signup == "open",
            providers=list(self.site.providers),
            last_provider=last_provider(self),
            next_query=next_query(target),
        )

    async def reason_for(self, target: str) -> Reason:
        """Why to sign in for the target. Its app may follow the form."""
        return (await self.allow_redirect_of(target)).reason(self.site.brand.name)

    async def allow_redirect_of(self, target: str) -> PendingTarget:
        """Lets `form-action` pass the redirect to the app: if the next authorization needs no page, that redirect
        follows this form. Returns the target with its app."""
        found = await pending(self.store, target)
        if found.redirect_uri:
            self.allow_form_to(found.redirect_uri)
        return found


class SignInHandler(SignInPage):
    """The sign-in page."""

    uses_scripts = True

    async def get(self) -> None:
        """Shows the form, unless there is nothing left to do."""
        query = self.query()
        target = safe_next(query.get("next"))
        late = Phrase("That took too long. Sign in again.") if query.get("late") else None
        if not await self.went_on(target):
            await self.show_sign_in(target, error=late)

    async def post(self) -> None:
        """Checks the password in a thread. Then starts a new session and ends the earlier one, or asks for the second
        step."""
        self.check_same_origin()
        params = self.body()
        target = safe_next(params.get("next"))
        typed, password = params.get("email") or "", params.get("password") or ""
        keep = bool(params.get(KEEP))
        try:
            email = normalise_email(typed)
        except ValueError:
            # An address that is too long is nobody's. It is not cut, because the rest may be somebody's address.
            email = typed if len(typed) <= MAX_EMAIL_BYTES else ""
        try:
            known, must = self.read_cookie(DEVICE_COOKIE), must_set_up(self.store.progress, target)
            found = await self.store.signing_in.with_password(
                email, password, self.counted_address, known, self.visitor, kept=keep, must=must
            )
        except SignedOut:
            self.set_status(400)
            error = Phrase("Incorrect e-mail address or password.")
            return await self.show_sign_in(target, typed, error, keep=keep)
        except Suspended as refusal:
            self.set_status(403)
            return await self.show_sign_in(target, typed, refusal.description, keep=keep)
        except SecondStepNeeded as needed:
            note_provider(self, "")
            return ask_step(self, needed, target, keep=keep)
        note_provider(self, "")
        await self.signed_in(found, target)


class SignUpHandler(SignInPage):
    """The page to make an account, as far as the operator allows it."""

    async def get(self) -> None:
        """Shows the form, unless the person has an account and no link for another one."""
        query = self.query()
        invite = query.get("invite")
        target = safe_next(query.get("next"))
        if not invite and await self.went_on(target):
            return
        invited = await self.check_invited(invite)
        if self.site.signup == "upstream" and not invited:
            return await self.show_providers(target)
        if invited:
            target = target if query.get("next") else self.going_on(invited.target)
            return await self.show(target, invited.email, invite=invite)
        if not await self.went_on(target):
            await self.begin(target, email_for(self.store.links, target, None), over=bool(invite))

    async def begin(self, target: str, email: str = "", name: str = "", *, over: bool) -> None:
        """The form for a person without an invitation. `over`: they came with a link that has expired or was used. They
        may have asked for the link themselves, so it is not called an invitation."""
        error = LINK_OVER if over else None
        if over:
            self.set_status(400)
        if self.site.mail.confirms:
            return await self.ask(target, email, error)
        await self.show(target, email, name, error)

    async def check_invited(self, invite: str | None) -> Invited | None:
        """The content of an invitation. Raises Refused("access_denied") if an invitation is required."""
        invited = await self.store.people.invited(invite) if invite and self.site.signup != "off" else None
        if invited is None and self.site.signup == "invite":
            need = Phrase("You need an invitation to create an account here.")
            raise Refused("access_denied", INVITATION_OVER if invite else need)
        if self.site.signup == "off":
            raise Refused("access_denied", CREATED_BY_OPERATOR)
        return invited

    async def show_providers(self, target: str) -> None:
        """The page of a server where accounts come from identity providers: the sign-in page, which says so."""
        if not any(one.create for one in self.site.providers):
            raise Refused("access_denied", CREATED_BY_OPERATOR)
        await self.show_sign_in(target, hint=FROM_ELSEWHERE)

    def creating(self) -> list[Provider]:
        """The providers that may create accounts."""
        return [one for one in self.site.providers if one.create and self.site.signup == "open"]

    def check_domain(self, email: str) -> None:
        """Raises ValueError if no account may be made with an address of this domain."""
        if not self.site.may_sign_up(email):
            raise ValueError(OTHER_DOMAIN.filled(domains=", ".join(self.site.allowed_domains)))

    async def show(
        self,
        target: str,
        email: str = "",
        name: str = "",
        error: str | None = None,
        invite: str | None = None,
        *,
        keep: bool = False,
    ) -> None:
        """The form, with the error if there is one."""
        self.render(
            "signin/signup.html",
            title=Phrase("Create an account"),
            signed_in=await self.profile_if_known(),
            why=await self.reason_for(target),
            next=target,
            email=email,
            name=name,
            error=error,
            providers=self.creating(),
            next_query=next_query(target),
            invite=invite,
            keep=keep,
            min_password=MIN_PASSWORD_LENGTH,
        )

    async def post(self) -> None:
        """Makes the account and signs the person in. Confirms the address only if an invitation was sent to it."""
        self.check_same_origin()
        params = self.body()
        target, invite, keep = safe_next(params.get("next")), params.get("invite"), bool(params.get(KEEP))
        typed, name, password = (params.get(field) or "" for field in ("email", "name", "password"))
        invited = await self.check_invited(invite)
        if self.site.signup == "upstream" and invited is None:
            raise Refused("access_denied", FROM_ELSEWHERE)
        taken = await self.store.limits.sign_up(self.counted_address)
        if invite and invited is None:
            return await self.begin(target, typed, name, over=True)
        if invited is None and self.site.mail.confirms:
            return await self.invite(typed, target)
        try:
            email = invited.email if invited else normalise_email(typed)
            if invited is None:
                self.check_domain(email)
            name = check_person_name(name)
            await self.check_new_password(password, email, name)
            async with taken:
                user = await self.store.people.create(
                    email, name, password, verified=invited is not None, event="signed_up", visitor=self.visitor
                )
        except (ValueError, Refused) as error:
            self.set_status(400)
            reason = reason_of(error)
            return await self.show(target, invited.email if invited else typed, name, reason, invite, keep=keep)
        credentials = await self.store.people.credentials(email)
        if credentials is None:
            raise SignedOut
        if invited is None:
            work = mails.confirmation(
                self.site, user, email, self.counted_address, target, again=False, wording=self.wording()
            )
            self.site.in_background(work)
        try:
            must = must_set_up(self.store.progress, target)
            found = await self.store.sessions.start(credentials, self.visitor, self.device(), kept=keep, must=must)
        except SecondStepNeeded as needed:
            return ask_step(self, needed, target, keep=keep)
        await self.replace_session(found)
        goes_to = landing(self.proved(target, found))
        if goes_to == ACCOUNT_PAGE:
            return self.see_done(f"{ACCOUNT_PAGE}?{'ready' if invited else 'welcome'}")
        self.see_other(goes_to)

    async def ask(self, target: str, email: str = "", error: str | None = None) -> None:
        """The form on a server that sends mail: only the address, because whoever reads its mail makes the account."""
        self.render(
            "signin/signup_address.html",
            title=Phrase("Create an account"),
            signed_in=await self.profile_if_known(),
            providers=self.creating(),
            next_query=next_query(target),
            why=await self.reason_for(target),
            next=target,
            email=email,
            error=error,
        )

    async def invite(self, typed: str, target: str) -> None:
        """Mails an invitation, or a notice if there is an account. The page says the same in both cases."""
        try:
            email = normalise_email(typed)
            self.check_domain(email)
        except ValueError as error:
            self.set_status(400)
            return await self.ask(target, typed, reason_of(error))
        with mails.asking(self.site, self.counted_address, "signup") as room:
            await self.store.limits.sign_up_mail(self.counted_address, email)
            self.remember_going(target, INVITE)
            work = mails.invitation(self.site, email, self.counted_address, target, self.wording())
            self.site.in_background(work, within=self.site.scatter, room=room.pop_all())
        self.render(
            "links/mail_sent.html",
            title=Phrase("Check your e-mail"),
            email=email,
            lasts=Phrase("7 days"),
            onward="",
            mail_reaches_people=True,
            if_account=False,
        )
