"""Exports of other servers, read as lines of an import."""
