"""Commands against a server elsewhere, through its management interface."""
