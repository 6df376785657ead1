"""`python -m observability.metrics` prints the table of docs/metrics.md."""

from observability.metrics.page import table

if __name__ == "__main__":
    print(table())
