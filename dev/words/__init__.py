"""The catalogues of pages and mails: extracts messages, writes and checks catalogues, makes languages for tests."""
