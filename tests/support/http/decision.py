"""The person's decision, as the consent page's script would send it."""

from __future__ import annotations

import json
from typing import Any

from tornado.httpclient import HTTPResponse

from tests.support.http.driver import Browser, fields_of

DECIDE = "/api/oauth/authorize"


async def decide_as_json(browser: Browser, page: HTTPResponse, **changes: Any) -> HTTPResponse:
    """The decision as the page's script would send it; a change to None leaves a field out."""
    form = fields_of(page, DECIDE)
    sent = {"request_id": form["request_id"], "decision": "allow", **changes}
    body = json.dumps({name: value for name, value in sent.items() if value is not None})
    headers = {"Content-Type": "application/json", "Accept": "application/json", "X-Xsrftoken": form["_xsrf"]}
    return await browser.send(DECIDE, "POST", headers=headers, body=body)
