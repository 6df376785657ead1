"""Who operates the server: roles, keys, and acts that a role allows."""
