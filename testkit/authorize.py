"""The authorization endpoint when a test acts for the person: the same checks and scripts, no pages."""

from __future__ import annotations

from functools import partial

from handlers.core.at_home import is_at_home
from handlers.core.params import Params, decode_json
from handlers.core.policy import Policy
from handlers.oauth.authorize import AuthorizeHandler
from handlers.oauth.decide import DENIED
from handlers.oauth.requests import Interaction
from store.apps.redirect_uris import is_interceptable
from store.apps.registration import Registration
from store.oauth.authorizations import AuthorizationRequest, Pending, SignInAgain, StepUp
from store.oauth.resources import plain_names
from store.refused import Refused, SignedOut
from testkit.reading import answer_of
from testkit.rehearsal import VISITOR, AutoConsent, Rehearsal

HEADER = "Latchkey-Consents"
"""The person of this one request, and their answer, in the form of the body of POST /testing/consents."""


class PlayedAuthorizeHandler(AuthorizeHandler):
    """GET /oauth/authorize, up to the question to the person."""

    def initialize(self, policy: Policy, rehearsal: Rehearsal | None = None) -> None:
        """Keeps the rehearsal too."""
        super().initialize(policy)
        assert rehearsal is not None
        self.rehearsal = rehearsal

    async def begin(
        self, app: Registration, request: AuthorizationRequest, interaction: Interaction, pairs: list[tuple[str, str]]
    ) -> None:
        """Answers for the person, or shows the pages if no person is set."""
        played = await self.played()
        if played.decides == "ask" or not is_at_home(self.request):
            return await super().begin(app, request, interaction, pairs)
        try:
            await self.play(played, app, request, interaction)
        except SignedOut:
            # For example, disabled: nobody could answer.
            raise Refused("access_denied", "This person cannot sign in.") from None
        except StepUp:
            raise Refused("unmet_authentication_requirements", "This person has no stronger way to sign in.") from None

    async def played(self) -> AutoConsent:
        """The answer to this request. Raises Refused("invalid_request")."""
        given = self.request.headers.get(HEADER)
        if given is None:
            return self.rehearsal.answer
        value = decode_json(given.encode("latin-1"))
        if not isinstance(value, dict):
            raise Refused("invalid_request", f"{HEADER} must be one JSON object.")
        known = await self.rehearsal.known_scopes()
        return answer_of(Params(value, typed=True), self.rehearsal.answer, known)

    async def play(
        self, played: AutoConsent, app: Registration, request: AuthorizationRequest, interaction: Interaction
    ) -> None:
        """Redirects with a code or with the refusal."""
        prompts = interaction.prompts
        session = await self.rehearsal.session(played.email, again=interaction.anew)
        if not await self.is_expected(app, interaction, session.user):
            raise Refused("login_required", "Another person is signed in.")
        denies = played.decides == "deny"
        # The same as for a person, except that a person who denies is asked even after an earlier consent.
        always_ask = denies or "consent" in prompts or (app.public and is_interceptable(request.redirect_uri))
        always_ask = always_ask or played.scopes is not None
        begin = partial(self.store.authorizations.begin, always_ask=always_ask, fresh=interaction.oldest)
        try:
            begun = await begin(session, request)
        except (SignInAgain, StepUp) as needed:
            if interaction.quiet and isinstance(needed, SignInAgain):
                raise Refused("login_required", "The person has to sign in.") from None
            if interaction.quiet:
                raise
            session = await self.rehearsal.session(played.email, again=True)
            begun = await begin(session, request)
        if not isinstance(begun, Pending):
            if request.pushed:
                await self.store.pushed.end(app.client_id, request.pushed)
            return self.send_back(app, request.redirect_uri, {"code": begun.code}, request.state, request.mode)
        if interaction.quiet:
            raise Refused("consent_required", "The person has to consent.")
        names = plain_names(request.scopes)
        async with self.store.pushed.answered(app.client_id, request.pushed):
            decided = await self.store.authorizations.decide(
                session,
                app,
                begun.request_id,
                allow=not denies,
                scopes=None if played.scopes is None else [one for one in names if one in played.scopes],
                visitor=VISITOR,
                spend_limit=played.spend_limit,
            )
        if decided.connected:
            self.store.app_stats.connected(app.client_id)
        answer = {"code": decided.code} if decided.code else DENIED
        self.send_back(app, decided.redirect_uri, answer, decided.state, decided.mode)
