"""The test kit for apps: all of Latchkey in memory, for the tests of an app that signs people in with it.

Once this package is installed, pytest has the fixture `latchkey`:

    def test_whoever_signs_in_is_greeted(latchkey, client):
        app = latchkey.app(redirect_uris=["http://testserver/callback"])
        ada = latchkey.person(name="Ada")
        latchkey.consents(person=ada)
        ...

docs/testing.md explains it, and how tests in other languages do the same over HTTP.
"""

from latchkey.testing.calls import LatchkeyError
from latchkey.testing.process import LatchkeyProcess
from latchkey.testing.service import Latchkey
from latchkey.testing.values import Api, App, Balance, Key, Person, Redirect, TokenResponse

__all__ = [
    "Api",
    "App",
    "Balance",
    "Key",
    "Latchkey",
    "LatchkeyError",
    "LatchkeyProcess",
    "Person",
    "Redirect",
    "TokenResponse",
]
