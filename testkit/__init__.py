"""The server's side of the test service for apps, over HTTP: docs/testing.md.

Only one line of runtime/processes.py imports this package, and only if `Settings.testable`: the store is in memory, the
host and the address are loopback, and one process serves. The package adds the routes of `testkit/routes.py` to the
application, and replaces the authorization endpoint with one that acts for the person.
"""
