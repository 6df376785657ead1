"""Password hashes of other servers, which people bring along when they move in."""
