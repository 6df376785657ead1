"""The page for a person whose sign-in is too weak for a request. RFC 9470, OpenID Connect Core 3.1.2.1."""

from __future__ import annotations

from urllib.parse import urlencode

from handlers.account.authorize_address import PATH, PROGRESS, Pairs, hinted, request_print
from handlers.oauth.answers import WayBack
from handlers.oauth.consent import ConsentPage
from store.apps.redirect_uris import display_origin
from store.apps.registration import Registration
from store.crypto.seal import NOBODY
from store.oauth.authorizations import AuthorizationRequest
from store.oauth.progress import SETS_UP, RequestProgress
from store.oauth.sign_in import methods_for
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile


class StepUpPage(ConsentPage):
    """A page of a request, which may demand a stronger sign-in."""

    def step_up(
        self,
        app: Registration,
        request: AuthorizationRequest,
        profile: Profile,
        here: Pairs,
        back: WayBack | None = None,
        path: str = PATH,
    ) -> None:
        """Offers a stronger sign-in, which leads back to `here`, the parameters of the page at `path`. Whoever has no
        second step sets one up there, unless only a passkey will do. `back` leads to the app without it."""
        passkey = bool(request.acr) and not {"1", "2"} & {*request.acr}
        pairs = hinted(here, profile.email)
        if not passkey:
            mark = set_up_mark(self.store.progress, pairs)
            pairs = [*(pair for pair in pairs if pair[0] != PROGRESS), (PROGRESS, mark)]
        # The present session lasts until the stronger sign-in, which begins with this person's address.
        self.render(
            "oauth/step_up.html",
            title=Phrase("Stronger sign-in needed"),
            signed_in=profile,
            app=app,
            app_domain=display_origin(request.redirect_uri) if back else "",
            passkey=passkey,
            again=f"/signin?{urlencode({'next': f'{path}?{urlencode(pairs)}'})}",
            back=back,
        )


def set_up_mark(progress: RequestProgress, pairs: Pairs) -> str:
    """The mark of a request that lets nobody in without a second step. A sign-in on the way to it sets one up."""
    return progress.mark(SETS_UP, request_print(pairs), NOBODY)


def too_weak(request: AuthorizationRequest) -> Refused:
    """The error for an app whose person signed in too weakly. A level that the app requested has an error of its own;
    for a rule of ours, Core 3.1.2.6 has this one."""
    if methods_for(request.acr):
        why = Phrase("The sign-in does not have the requested level.")
        return Refused("unmet_authentication_requirements", why)
    return Refused("interaction_required", Phrase("The person has to show a second step."))
