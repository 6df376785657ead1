"""What open pages watch."""
