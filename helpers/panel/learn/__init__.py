"""What a learner is asked, and what the answers unlock."""
