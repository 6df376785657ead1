"""The life of a server process: sockets, workers, signals, reloading, and shutdown."""
