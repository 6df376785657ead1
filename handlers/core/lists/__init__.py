"""Long lists on pages."""
