"""The second step that people must set up to sign in."""
