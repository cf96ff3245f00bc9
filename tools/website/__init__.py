"""The guide as static pages: lessons with their outputs, the causes, and recordings that play."""
