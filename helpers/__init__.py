"""Stuck Ranks: finds out why a multi-process PyTorch job is stuck."""
