"""The life of a server process: sockets, workers, what it does in between, reloading, and its end."""
