"""Every fact that flows from a job to a report, and how a fact is said."""
