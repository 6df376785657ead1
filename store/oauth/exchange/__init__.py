"""Tokens that came from other tokens: the exchange, and what an app handed on."""
