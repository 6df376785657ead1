"""HTTP in, HTTP out. `handlers/routes.py` is the route map."""
