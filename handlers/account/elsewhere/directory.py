"""/signin/with/NAME/password: the name and the password that a person has in a directory."""

from __future__ import annotations

from handlers.account.elsewhere.arriving import ArrivingPage
from handlers.account.elsewhere.page import FLOW_COOKIE, NO_SUCH
from handlers.core.page import Onward
from outbound.identity.calling import ProviderAway, ProviderRefused
from outbound.identity.ldap.directory import DirectoryPerson, DirectorySettings, WrongPassword
from outbound.identity.providers import Provider
from outbound.identity.sign_in import arrival_of
from store.accounts.signin.upstream_flow import Flow
from store.phrases import Phrase
from store.refused import Refused

SIGN_IN = Onward("/signin", Phrase("Back to sign-in"))
SECURITY = Onward("/account/security", Phrase("Back to Security"))


class DirectoryHandler(ArrivingPage):
    """The form of a directory. It belongs to a request, as the page of another provider does."""

    onward = SIGN_IN
    _managed: tuple[str, ...] = ()
    _granted: tuple[str, ...] = ()

    def directory_named(self, name: str) -> tuple[Provider, DirectorySettings]:
        """The directory of this name. Raises Refused("not_found")."""
        provider = self.provider_named(name)
        if provider.directory is None:
            raise Refused("not_found", NO_SUCH)
        return provider, provider.directory

    async def get(self, name: str) -> None:
        """Shows the form, or begins a request for a browser that has none."""
        provider, _ = self.directory_named(name)
        flow = self.flow_here(provider)
        if flow is None:
            return self.see_other(f"/signin/with/{provider.name}")
        await self.show_form(provider, flow)

    async def post(self, name: str) -> None:
        """Asks the directory, and does what the request was made for."""
        self.check_same_origin()
        provider, settings = self.directory_named(name)
        flow, params = self.flow_here(provider), self.body()
        if flow is None:
            return self.see_other(f"/signin/with/{provider.name}")
        login, password = params.get("login") or "", params.get("password") or ""
        await self.store.limits.passkey(self.counted_address)
        try:
            found = await self.site.elsewhere.directories.check(
                settings, login, password, self.counted_address, lambda who: self.count(provider, who)
            )
            arrival = arrival_of(provider, self.claims_of(provider, found), "")
        except WrongPassword as wrong:
            self.note_refused(provider, str(wrong))
            self.set_status(400)
            return await self.show_form(provider, flow, login, Phrase("Incorrect user name or password."))
        except ProviderAway as away:
            self.set_status(503)
            return await self.show_form(provider, flow, login, self.note_away(provider, away))
        except ProviderRefused as refused:
            self.note_refused(provider, str(refused))
            raise Refused(
                "temporarily_unavailable", Phrase("%(provider)s couldn't sign you in.", provider=provider.title)
            ) from None
        if flow.of_session:
            self.onward = SECURITY
        self.write_cookie(FLOW_COOKIE, None)
        self._managed, self._granted = settings.managed, found.groups
        await self.arrived(provider, flow, arrival)

    async def count(self, provider: Provider, who: str) -> None:
        """Counts an attempt for an account of the directory, existing or not."""
        await self.store.limits.sign_in_elsewhere(f"{provider.issuer} {who}")

    def claims_of(self, provider: Provider, found: DirectoryPerson) -> dict[str, object]:
        """What the directory says of a person, in the form of an ID token's claims."""
        return {
            "iss": provider.issuer,
            "sub": found.subject,
            "email": found.email,
            "email_verified": True,
            "name": found.name,
        }

    async def before_session(self, user: str) -> None:
        """Takes the person's groups over from the directory."""
        await self.store.groups.take_over(user, self._managed, self._granted)

    async def show_form(self, provider: Provider, flow: Flow, login: str = "", error: str = "") -> None:
        """The form, with what was typed but the password."""
        target = self.target_of(flow)
        self.render(
            "signin/directory.html",
            title=Phrase("Sign in with %(provider)s", provider=provider.title),
            signed_in=await self.profile_if_known(),
            provider=provider,
            why=None if flow.of_session else await self.reason_for(target),
            links=flow.links,
            confirms=flow.confirms,
            login=login[:200],
            error=error,
        )
