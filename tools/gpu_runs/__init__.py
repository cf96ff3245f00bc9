"""The runs of `make gpu`: what is planned, how a run is made, what came of it, and the page."""
