"""Whether the time that an answer takes tells what the answer does not: `make timing`."""
