"""A model at several scripted servers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from handlers.core.site import Site
from outbound.ai.models import Model
from outbound.ai.ranking import ranked
from tests.support.http.upstream import KEY, VENDOR_MODEL, ScriptedUpstream
from tests.support.store.ai_spender import MODEL, PATIENT, Spender

NAMES = ("red", "green", "blue")
PRICES = """
[[upstream.models.prices]]
version = "v3"
input = 3_141_593
output = 15_926_535
"""


def file_of(urls: dict[str, str], more: str = "", key: str = f'key = "{KEY}"') -> str:
    """The text of `--ai-config` for one model at servers of these names; `more` are lines for each server."""
    text = ""
    for name, url in urls.items():
        text += f'[[upstream]]\nname = "{name}"\nurl = "{url}"\n{key}\n{more}\n'
        text += f"first_byte_timeout = {PATIENT.first_byte}\ntotal_timeout = {PATIENT.total}\n"
        text += f'[[upstream.models]]\nid = "{MODEL}"\nupstream_id = "{VENDOR_MODEL}"\nmax_output = 4096\n{PRICES}'
    return text


@dataclass
class Several:
    """The scripted servers by name, and the site whose model they have."""

    servers: dict[str, ScriptedUpstream]
    site: Site

    @property
    def model(self) -> Model:
        """The model."""
        (model,) = self.site.models.all()
        return model

    def upstreams(self, spender: Spender) -> list[Any]:
        """The configured servers in the order in which this app's calls ask them."""
        return [one.upstream for one in ranked(self.model.candidates, spender.user, spender.app.client_id)]

    def order(self, spender: Spender) -> list[ScriptedUpstream]:
        """The scripted servers in that order."""
        return [self.servers[upstream.name] for upstream in self.upstreams(spender)]

    def calls(self, spender: Spender) -> list[int]:
        """How many calls each server got, in that order."""
        return [len(server.calls) for server in self.order(spender)]

    def limit(self, **seconds: float) -> None:
        """Sets other time limits at all servers."""
        for upstream in self.site.models.upstreams():
            upstream.limits = replace(upstream.limits, **seconds)
