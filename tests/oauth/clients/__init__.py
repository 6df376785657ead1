"""OAuth client libraries at work on Latchkey: one file each, whose marked lines docs/clients.md shows."""
