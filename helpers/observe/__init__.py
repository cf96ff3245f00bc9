"""Looks at a job become snapshots of it: the sampler reads, the observer only judges what was read."""
