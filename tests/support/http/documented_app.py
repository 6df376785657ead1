"""An app that registers itself by a Client ID metadata document, and the site that has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from outbound.address_policy import AddressPolicy
from outbound.client_documents import ClientDocuments
from tests.support.http.driver import App
from tests.support.http.key_app import KeyApp
from tests.support.http.receiver import Reply, answering
from tests.support.processes.proven_domain import DOMAIN, Domain

URL = f"https://{DOMAIN}/client.json"
WEB, NATIVE = f"https://{DOMAIN}/callback", "http://localhost/callback"
PLAIN: dict[str, Any] = {
    "client_id": URL,
    "client_name": "Notes",
    "redirect_uris": [WEB, NATIVE],
    "token_endpoint_auth_method": "none",
}


class Publisher:
    """The site of the app. `fetched` are the requests for its document."""

    domain: Domain
    documents: ClientDocuments

    @classmethod
    async def make(cls, folder: Path, policy: AddressPolicy | None = None, whole: float = 5.0) -> Publisher:
        """Starts the site, without a document."""
        self = cls()
        self.domain = await Domain.make(folder, policy, whole)
        self.documents = ClientDocuments(self.domain.fetcher)
        return self

    @property
    def fetched(self) -> int:
        """How often the document was asked for."""
        return len(self.domain.receiver.posted)

    def publishes(self, *headers: str, **changes: Any) -> None:
        """Changes the document (a change to None leaves a member out) and its headers."""
        document = {name: value for name, value in {**PLAIN, **changes}.items() if value is not None}
        self.answers(json_reply(document, *headers))

    def answers(self, reply: Reply) -> None:
        """Changes the answer to every request."""
        self.domain.answers(reply)


def json_reply(document: Any, *headers: str, status: int = 200) -> Reply:
    """A JSON answer."""
    return answering(status, "Content-Type: application/json", *headers, body=json.dumps(document).encode())


def plain_app(base_url: str, url: str = URL, redirect_uri: str = WEB) -> App:
    """The public app."""
    return App(base_url, url, None, redirect_uri)


def key_app(base_url: str) -> KeyApp:
    """The app that proves itself by its key."""
    return KeyApp(base_url, URL, None, WEB)
