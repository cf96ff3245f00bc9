"""What `make soak` measures, a module each, with `measure(...) -> Part`."""
