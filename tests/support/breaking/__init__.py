"""What is broken by hand in a store that has something of everything in it."""
