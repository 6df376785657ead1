"""What Latchkey calls: the servers of AI models."""
