"""Two hosts behind a proxy on a Sentinel set, upgraded one by one and failed over, under load."""
