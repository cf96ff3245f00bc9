"""A run as its panel shows it, live or from a recording."""
