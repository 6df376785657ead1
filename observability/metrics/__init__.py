"""What the server counts of its own doings, for Prometheus: declared as data, kept in memory that all workers share,
read by whichever of them is asked."""
