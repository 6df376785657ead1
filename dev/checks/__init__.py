"""What `make lint` asks beside style and types: of the locked packages, and of what might be a secret."""
