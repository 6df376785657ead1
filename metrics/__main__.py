"""`python -m metrics` prints the table of docs/metrics.md."""

from metrics.page import table

if __name__ == "__main__":
    print(table())
