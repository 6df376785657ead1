"""Small setups of comparable servers, measured next to Latchkey; see ../README.md."""
