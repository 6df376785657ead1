"""The server's metrics, for Prometheus: declared as data, and kept in memory that all workers share, so that any worker
can report them."""
