"""The programs here are run under the instrument, not collected."""

collect_ignore_glob = ["*.py"]
