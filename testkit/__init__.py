"""What tests of apps do with a server of their own, over HTTP: docs/testing.md.

One line of runtime/processes.py alone imports this package, and stands behind `Settings.testable`: the store is in
memory, the host and the address are loopback, and one process serves. What it adds to the application is routes of
`testkit/routes.py`, and an authorization endpoint that plays the person.
"""
