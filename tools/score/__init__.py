"""How often the instrument is right: a folder of jobs, one run of each, and what came out."""
