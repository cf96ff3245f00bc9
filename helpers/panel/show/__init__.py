"""A snapshot as HTML. No widget here."""
