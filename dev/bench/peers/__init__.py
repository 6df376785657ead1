"""Small set-ups of comparable servers, measured next to Latchkey; see ../README.md."""
