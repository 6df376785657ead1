"""The operators' console, `/admin` on the main port: pages for people with a role."""
