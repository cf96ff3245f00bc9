"""A verdict as text, JSON and a page; snapshots as a picture."""
