"""Starts any command under a guardian process, or finds a job that runs; ends all of it."""
