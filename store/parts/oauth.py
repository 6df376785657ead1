"""Authorizations, tokens and grants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.parts.part import part
from store.parts.people import PeopleParts

if TYPE_CHECKING:
    from store.accounts.profiles import Profiles
    from store.oauth.api_access import ApiAccess
    from store.oauth.app_tokens import AppTokens
    from store.oauth.assertions.assertion_grants import AssertionGrants
    from store.oauth.authorizations import Authorizations
    from store.oauth.client_assertions import ClientAssertions
    from store.oauth.device_requests import DeviceRequests
    from store.oauth.exchange.token_exchange import TokenExchange
    from store.oauth.grants import Grants
    from store.oauth.id_tokens import IdTokens
    from store.oauth.identity import Identity
    from store.oauth.introspection import Introspection
    from store.oauth.logout_tokens import LogoutTokens
    from store.oauth.mcp_messages import McpMessages
    from store.oauth.portions import Portions
    from store.oauth.progress import RequestProgress
    from store.oauth.proofs import Proofs
    from store.oauth.pushed import PushedRequests
    from store.oauth.tokens import Tokens


class OauthParts(PeopleParts):
    """Authorizations, tokens and grants."""

    @part
    def authorizations(self) -> Authorizations:
        from store.oauth.authorizations import Authorizations

        found = Authorizations(self.scripts, self.sealer, self._idle, self.bounds, self.rates)
        found.keep = self.self_registered.keep
        return found

    @part
    def progress(self) -> RequestProgress:
        from store.oauth.progress import RequestProgress

        return RequestProgress(self.sealer)

    @part
    def client_assertions(self) -> ClientAssertions:
        from store.oauth.client_assertions import ClientAssertions

        return ClientAssertions(self.scripts)

    @part
    def _api_access(self) -> ApiAccess:
        from store.oauth.api_access import ApiAccess

        return ApiAccess(self.apis, self.signing_keys, self.subjects)

    @part
    def proofs(self) -> Proofs:
        from store.oauth.proofs import Proofs

        return Proofs(self.scripts, self.sealer)

    @part
    def tokens(self) -> Tokens:
        from store.oauth.tokens import Tokens

        return Tokens(
            self.scripts,
            self.sealer,
            self.limits,
            self.app_stats,
            self._wakeup,
            self.bounds,
            self._api_access,
            self.proofs,
            self._refresh_lifetime,
        )

    @part
    def introspection(self) -> Introspection:
        from store.oauth.introspection import Introspection

        return Introspection(
            self.scripts, self.sealer, self._api_access, self.subjects, self.apps, self.apis, self._refresh_lifetime
        )

    @part
    def client_windows(self) -> Portions:
        from store.lifetimes import CLIENT
        from store.oauth.portions import Portions

        return Portions(self.scripts, CLIENT)

    @part
    def mcp_messages(self) -> McpMessages:
        from store.oauth.mcp_messages import McpMessages

        return McpMessages(self.scripts)

    @part
    def app_tokens(self) -> AppTokens:
        from store.oauth.app_tokens import AppTokens

        return AppTokens(self.scripts, self.sealer, self.apis, self._api_access, self.client_windows, self.proofs)

    @part
    def token_exchange(self) -> TokenExchange:
        from store.oauth.exchange.token_exchange import TokenExchange

        return TokenExchange(self.scripts, self.sealer, self.limits, self.apps, self._api_access, self.proofs)

    @part
    def assertion_grants(self) -> AssertionGrants:
        from store.oauth.assertions.assertion_grants import AssertionGrants

        return AssertionGrants(
            self.scripts,
            self.sealer,
            self.addresses,
            self.app_stats,
            self.bounds,
            self.apis,
            self._api_access,
            self.proofs,
        )

    @part
    def pushed(self) -> PushedRequests:
        from store.oauth.pushed import PushedRequests

        return PushedRequests(self.scripts, self.sealer)

    @part
    def device_requests(self) -> DeviceRequests:
        from store.oauth.device_requests import DeviceRequests

        return DeviceRequests(self.scripts, self.sealer, self.keys, self.limits, self.tokens)

    @part
    def device_windows(self) -> Portions:
        from store.lifetimes import DEVICE_REQUESTS
        from store.oauth.portions import Portions

        return Portions(self.scripts, DEVICE_REQUESTS)

    @part
    def introspection_windows(self) -> Portions:
        from store.lifetimes import INTROSPECT
        from store.oauth.portions import Portions

        return Portions(self.scripts, INTROSPECT)

    @part
    def id_tokens(self) -> IdTokens:
        from store.oauth.id_tokens import IdTokens

        return IdTokens(self.signing_keys)

    @part
    def logout_tokens(self) -> LogoutTokens:
        from store.oauth.logout_tokens import LogoutTokens

        return LogoutTokens(self.signing_keys)

    @part
    def identity(self) -> Identity:
        from store.oauth.identity import Identity

        return Identity(self.scripts, self.rates)

    @part
    def profiles(self) -> Profiles:
        from store.accounts.profiles import Profiles

        return Profiles(self.scripts, self.sealer, self._idle, self.headroom)

    @part
    def grants(self) -> Grants:
        from store.oauth.grants import Grants

        return Grants(self.scripts, self._wakeup, self._idle, self.rates)
