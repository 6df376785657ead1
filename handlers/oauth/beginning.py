"""The base class of endpoints at which an app begins an authorization, before a browser comes with it."""

from __future__ import annotations

from typing import Any

from handlers.core.api import ApiHandler
from handlers.core.params import Params
from store.apps.registration import Registration
from store.refused import Refused
from store.results import Window


class BeginningHandler(ApiHandler):
    """An endpoint whose caller may be an app that has never come before."""

    door = "token"
    begins = True

    async def post(self) -> None:
        """Authenticates and counts the app, and answers as `begin` says, or with an error of the token endpoint."""
        if "DPoP" in self.request.headers:
            self.expect_proof()
        params = self.body()
        self.check_first(params)
        app = await self.authenticate(params)
        assert app is not None
        window = await self.take_window(app)
        try:
            answer = await self.begin(app, params, window)
        except Refused as refusal:
            refusal.window = window
            raise
        self.write_window(window)
        self.write_json(answer)

    def check_first(self, params: Params) -> None:
        """Refuses what is wrong whoever asks. Raises Refused."""

    async def take_window(self, app: Registration) -> Window:
        """Counts the call for the app, or for the address if the app proves nothing."""
        if app.public:
            return await self.store.limits.public_client(app.client_id, self.counted_address, app.calls_per_minute)
        return await self.store.client_windows.take(app.client_id, app.calls_per_minute)

    async def begin(self, app: Registration, params: Params, window: Window) -> dict[str, Any]:
        """Checks and keeps the request; returns the body of the answer. Raises Refused."""
        raise NotImplementedError
