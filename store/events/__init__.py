"""The declarations of security events."""
