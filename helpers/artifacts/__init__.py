"""What a job that is dead or elsewhere has left: dumps, logs and recordings."""
