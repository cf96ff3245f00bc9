"""Which fix of a cause's page fits a case. No I/O."""
