"""Latchkey under load while things break, and a checker that proves from what clients saw that it kept its promises."""
