"""What made ranks go different ways: the statement at which they parted. No I/O."""
