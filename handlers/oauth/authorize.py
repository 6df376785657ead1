"""GET and POST /oauth/authorize: from the app's request to a code, or to the page that the person needs. SPEC 4.1,
OpenID Connect Core 3.1.2."""

from __future__ import annotations

from urllib.parse import urlsplit

from handlers.account.account_list import listed
from handlers.account.authorize_address import (
    PROGRESS,
    SURELY_SHORT,
    Pairs,
    address_of,
    check_length,
    request_print,
)
from handlers.account.chooser import chooser_address
from handlers.core.page import Onward
from handlers.core.params import JSON, body_pairs, media_type, once, parse_pairs
from handlers.oauth.answers import mark_of
from handlers.oauth.pushed_address import pushed_address, pushed_uri
from handlers.oauth.pushed_arrivals import PushedArrivals
from handlers.oauth.request_objects import open_object
from handlers.oauth.requests import (
    SIGN_IN,
    Interaction,
    check_api,
    check_mode,
    check_redirect_uri,
    check_request,
    first_of,
    words_of,
)
from handlers.oauth.step_up import StepUpPage, set_up_mark, too_weak
from store.accounts.signin.sessions import Session
from store.apps.client_ids import is_document_url
from store.apps.owners.members import role_of
from store.apps.owners.roles import may
from store.apps.redirect_uris import display_origin, is_interceptable
from store.apps.registration import Registration
from store.oauth.authorizations import AuthorizationRequest, ConsentRequest, Outsider, Pending, SignInAgain, StepUp
from store.oauth.progress import RequestStep
from store.phrases import Phrase
from store.refused import Refused, SignedOut

SIGN_IN_SCOPES = frozenset(("openid", "profile", "email", "groups"))
"""What the operator's own apps get without a page."""


class AuthorizeHandler(PushedArrivals, StepUpPage):
    """The address to which an app sends a person's browser."""

    door = "authorize"

    async def get(self) -> None:
        """Redirects with a code or to the sign-in page, or shows the consent page."""
        here = parse_pairs(self.request.query)
        if len(self.request.query) > SURELY_SHORT:
            check_length(here)
        # Until app and redirect URI are known to belong together, errors are pages: nothing is redirected.
        app = await self.check_client(here)
        pushed, checked = "", None
        if request_uri := pushed_uri(here):
            pushed = self.store.pushed.id_of(app.client_id, request_uri)
            record = await self.open_pushed(app, pushed)
            pairs, here, checked = record.pairs, pushed_address(here, record.pairs), record.checked(app, self.site)
        else:
            pairs, here = await open_object(self.site, app, here) or (here, here)
        self.speak(here)
        if checked is not None:
            redirect_uri = checked[0].redirect_uri
        else:
            redirect_uri = self.own_try_page(app, pairs) or check_redirect_uri(app, pairs, self.site.base_url)
            check_mode(pairs)
        try:
            if app.require_pushed and not pushed:
                raise Refused("invalid_request", Phrase("This app must push its authorization requests (PAR)."))
            rules = self.site.base_url, self.site.require_pkce, self.site.models.find, self.site.mcp_scopes
            request, interaction = checked or check_request(app, redirect_uri, once(pairs), *rules)
            request = await check_api(self.store.apis, app, request)
            if pushed:
                request = request._replace(pushed=pushed)
            await self.begin(app, request, interaction, here)
        except Refused as refusal:
            if refusal.code in ("rate_limited", "invalid_request_uri"):
                raise
            await self.answer_error(app, redirect_uri, refusal, pairs, here, pushed)

    async def head(self, *args: str, **kwargs: str) -> None:
        """Says whether the app is known. Whatever only looks ahead changes nothing, and all else that a GET does would
        be the arrival of a pushed request, a code, or a request that waits."""
        await self.check_client(parse_pairs(self.request.query), looking=True)

    def post(self) -> None:
        """Core 3.1.2.1: the same parameters as a form, or as JSON. Redirects to the same request by GET: browsers send
        no session cookie with another site's form."""
        if media_type(self.request) == JSON:
            params = self.body()
            pairs = params.pairs()
        else:
            pairs = body_pairs(self.request)
        check_length(pairs)
        self.see_other(address_of(pairs))

    async def check_client(self, pairs: Pairs, looking: bool = False) -> Registration:
        """The app, if it is registered and active. Reads its metadata document, unless a program only looks ahead."""
        client_id = once([pair for pair in pairs if pair[0] == "client_id"]).get("client_id")
        if client_id and is_document_url(client_id) and self.store.apps.documents and not looking:
            app: Registration | None = await self.of_document(client_id)
        else:
            app = await self.store.apps.active(client_id) if client_id else None
        # A document's app has one name here, its URL: the inner id would not have the document read again.
        if app is None or client_id != app.wire_id:
            await self.tell_owner(client_id or "")
            raise Refused("invalid_request", Phrase("The app that sent you here is not known to this server."))
        self.logged_app = "" if app.origin else app.client_id
        return app

    async def of_document(self, url: str) -> Registration:
        """The app that a metadata document describes. Until that is known, errors are pages."""
        try:
            return await self.site.client_documents.current(self.store, url, self.site.asker(self.counted_address))
        except Refused as refusal:
            if refusal.code in ("rate_limited", "temporarily_unavailable"):
                raise
            why = Phrase(
                "We couldn’t use what the app at %(host)s says about itself. %(reason)s",
                host=urlsplit(url).netloc,
                reason=refusal.description,
            )
            raise Refused("invalid_request", why) from None

    async def tell_owner(self, client_id: str) -> None:
        """Tells the owner of an app why nobody can use it. For anybody else it is unknown. Raises Refused."""
        app = await self.store.apps.find(client_id) if self.session() else None
        person = await self.profile() if app and app.owner else None
        if app is None or person is None or role_of(app, person.user) is None:
            return
        self.onward = Onward(f"/developer/apps/{client_id}", Phrase("Go to your app"))
        if app.status == "disabled":
            raise Refused("invalid_request", Phrase("The operator of this server has disabled your app. Ask them why."))
        raise Refused("invalid_request", Phrase("Your app is switched off. Switch it on to let people sign in."))

    def own_try_page(self, app: Registration, pairs: Pairs) -> str | None:
        """Our page on which the owner tries the app, if the request returns there. For anybody else it is no redirect
        URI: the code goes to the browser of the one person who may open the page, for that person."""
        redirect_uris = [value for name, value in pairs if name == "redirect_uri"]
        if not app.owner or redirect_uris != [page := try_page(self.site.base_url, app.client_id)]:
            return None
        session = self.session()
        return page if session is not None and may(role_of(app, session.user), "change") else None

    async def begin(
        self, app: Registration, request: AuthorizationRequest, interaction: Interaction, here: Pairs
    ) -> None:
        """Continues for a person who is signed in; sends others to sign in and back."""
        session = self.session()
        step = self.step_of(session, here)
        since = step.at if step else 0
        if session is None or (interaction.anew and not since):
            return self.sign_in_first(here, interaction, request)
        if not await self.is_expected(app, interaction, session.user):
            return await self.other_person(here, interaction, step)
        # RFC 8252 8.6: only the consent page proves which app listens at a loopback port or a custom scheme.
        always_ask = "consent" in interaction.prompts or (app.public and is_interceptable(request.redirect_uri))
        # Nobody but the person decides about an amount.
        always_ask = always_ask or bool(request.details)
        if {"select_account", "create"} & interaction.prompts and step is None:
            # Core 3.1.2.1, `select_account`.
            return self.see_other(chooser_address(address_of(here), creates="create" in interaction.prompts))
        try:
            begun = await self.store.authorizations.begin(
                session,
                request,
                always_ask=always_ask,
                fresh=interaction.oldest,
                since=since if interaction.anew or interaction.max_age else 0,
            )
        except (SignedOut, SignInAgain):
            return self.sign_in_first(here, interaction, request)
        except Outsider as outsider:
            return self.keep_out(app, request, interaction, outsider)
        except StepUp as needed:
            refusal = too_weak(request)
            if interaction.quiet:
                raise interaction.quietly(refusal) from None
            answer = {"error": refusal.code, "error_description": refusal.description}
            back = self.way_back(app, request.redirect_uri, answer, request.state, request.mode)
            return self.step_up(app, request, needed.profile, here, back)
        if not isinstance(begun, Pending):
            if request.pushed:
                await self.end_pushed(app, request.pushed)
            return self.send_back(app, request.redirect_uri, {"code": begun.code}, request.state, request.mode)
        confirmed = begun.profile.email_verified or not self.site.mail.confirms
        if confirmed and not (always_ask or begun.paused or begun.ended) and needs_no_consent(app, request):
            return await self.let_in(app, session, request, begun)
        if interaction.quiet:
            raise interaction.quietly(Refused("consent_required", Phrase("The person has to consent.")))
        if not confirmed:
            return await self.confirm_first(app, begun.profile, again(here))
        asked = ConsentRequest(request.redirect_uri, request.scopes, request.api)
        await self.show_consent(app, asked, begun, again(here))

    async def let_in(self, app: Registration, session: Session, request: AuthorizationRequest, begun: Pending) -> None:
        """Decides in the place of the person, who is only signed in to the operator's own app."""
        async with self.store.pushed.answered(app.client_id, request.pushed):
            decided = await self.store.authorizations.decide(
                session, app, begun.request_id, allow=True, scopes=None, visitor=self.visitor, unseen=True
            )
        if decided.connected:
            self.store.app_stats.connected(app.client_id)
        self.send_back(app, decided.redirect_uri, {"code": decided.code or ""}, decided.state, decided.mode)

    def step_of(self, session: Session | None, here: Pairs) -> RequestStep | None:
        """What this person has done for this request, by the mark in its address."""
        mark = first_of(here, PROGRESS)
        step = self.store.progress.open(mark, request_print(here)) if mark else None
        return step if step and session and step.user == session.user else None

    async def is_expected(self, app: Registration, interaction: Interaction, user: str) -> bool:
        """Whether the app may mean this person (Core 3.1.2.2): its `id_token_hint` and its claim `sub` may name one.
        No table leads from a `sub` to a person, so that of the person here is computed. Raises
        Refused("invalid_request") for a wrong hint."""
        if not interaction.hint and interaction.subjects is None:
            return True
        sub = await self.store.subjects.of(app.client_id, app.sector, user)
        if interaction.hint:
            hint = await self.store.id_tokens.read_hint(interaction.hint, self.site.base_url, app.wire_id)
            if not app.rules.allows(hint.algorithm):
                raise Refused(
                    "invalid_request",
                    Phrase(
                        "The ID token in id_token_hint is signed with an algorithm that this server doesn't accept."
                    ),
                )
            if hint.sub != sub:
                return False
        return interaction.subjects is None or sub in interaction.subjects

    async def other_person(self, here: Pairs, interaction: Interaction, step: RequestStep | None) -> None:
        """Refuses a person whom the app does not mean. Lets them sign in as somebody else first if their session is
        over, or if an answer would tell the app whether it guessed who is signed in."""
        signed_in_for_this = step is not None and step.done == "sign-in"
        if (interaction.guesses and not signed_in_for_this) or await self.profile() is None:
            return self.sign_in_first(here, interaction)
        raise Refused("login_required", SIGN_IN)

    async def answer_error(
        self, app: Registration, redirect_uri: str, refusal: Refused, pairs: Pairs, here: Pairs, pushed: str
    ) -> None:
        """Sends the error to the app (RFC 6749 4.1.2.1). If anybody may have registered the app, nobody is redirected
        before signing in (RFC 9700 4.11.2), and `prompt=none` gets a page, against Core 3.1.2.6."""
        self.log_refusal(refusal)
        answer = {"error": refusal.code, "error_description": refusal.description}
        state, mode = first_of(pairs, "state"), first_of(pairs, "response_mode") or ""
        if not app.from_operator:
            if any(name == "prompt" and "none" in words_of(value) for name, value in pairs):
                return await self.show_target(app, redirect_uri, answer, state, mode)
            if await self.profile() is None:
                return self.to_sign_in(address_of(here))
        if pushed:
            await self.end_pushed(app, pushed)
        self.send_back(app, redirect_uri, answer, state, mode)

    async def show_target(
        self, app: Registration, redirect_uri: str, answer: dict[str, str], state: str | None, mode: str
    ) -> None:
        """A page that names the address, and lets the person decide to go there."""
        self.render(
            "oauth/leaving.html",
            title=Phrase("Go to %(app)s?", app=app.name),
            signed_in=await self.profile(),
            app=app,
            app_domain=display_origin(redirect_uri),
            mark=mark_of(app, redirect_uri, self.site.brand.name),
            back=self.way_back(app, redirect_uri, answer, state, mode),
        )

    def sign_in_first(self, here: Pairs, interaction: Interaction, request: AuthorizationRequest | None = None) -> None:
        """Redirects to the sign-in page and back here. The sign-in leaves a mark if the request demands one, and sets
        a second step up on the way if the request demands that."""
        if interaction.quiet:
            raise Refused("login_required", SIGN_IN)
        mark = set_up_mark(self.store.progress, here) if request and request.second_step else ""
        target = address_of(here, mark)
        if self.session() is None and "create" in interaction.prompts and self.site.signup != "off":
            self.to_sign_up(target)
        elif self.session() is None and "select_account" in interaction.prompts and listed(self):
            self.see_other(chooser_address(target))
        else:
            self.to_sign_in(target)

    def keep_out(
        self, app: Registration, request: AuthorizationRequest, interaction: Interaction, outsider: Outsider
    ) -> None:
        """Tells a person that the app is for members of groups, and lets them go back to it. The page doesn't name the
        groups: that is nobody's business but the operator's."""
        if interaction.quiet:
            raise interaction.quietly(outsider)
        answer = {"error": outsider.code, "error_description": outsider.description}
        self.render(
            "oauth/keep_out.html",
            title=Phrase("You can’t use %(app)s yet", app=app.name),
            signed_in=outsider.profile,
            app=app,
            app_domain=display_origin(request.redirect_uri),
            back=self.way_back(app, request.redirect_uri, answer, request.state, request.mode),
        )


def needs_no_consent(app: Registration, request: AuthorizationRequest) -> bool:
    """Whether the request only signs a person in, and the app is the operator's own. An app that has an owner is not:
    its owner could send the answers elsewhere."""
    own = app.first_party and not (app.owner or app.origin)
    return own and not (request.api or request.details) and SIGN_IN_SCOPES.issuperset(request.scopes)


def try_page(base_url: str, client_id: str) -> str:
    """The address of the page on which an owner tries the app."""
    return f"{base_url}/developer/apps/{client_id}/try"


def again(here: Pairs) -> str:
    """The address of the request as it is now, with its mark."""
    return address_of(here, first_of(here, PROGRESS) or "")
