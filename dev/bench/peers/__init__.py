"""Small set-ups of servers that do what Latchkey does, to be measured beside it; ../README.md says how."""
