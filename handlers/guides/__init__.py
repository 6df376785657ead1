"""Pages of the documentation in the portal, filled with the values of an app."""
