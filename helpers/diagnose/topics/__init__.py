"""Pages of what people ask about that is no cause of its own."""
