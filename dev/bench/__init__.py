"""Measurements of the running product; README.md says how to repeat them."""
