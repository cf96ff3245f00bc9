"""How often the instrument is right: it runs a folder of jobs and compares the reports."""
