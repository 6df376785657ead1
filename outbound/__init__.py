"""Calls to other servers: AI models, mail, webhooks, breached passwords, files that prove domains."""
