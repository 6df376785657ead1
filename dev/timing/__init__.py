"""`make timing`: checks that response times reveal nothing that the responses hide."""
