"""The command line: `stuck-ranks`, in this checkout also `python -m helpers`. One file a verb."""
