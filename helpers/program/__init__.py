"""The reader of the job's own source: text in, facts out. It knows nothing of the other rooms."""
