"""Programs that sign people in with OpenID Connect, unmodified. docs/programs.md shows their settings."""
