"""One file a cause: how it is recognised. The page of the same name says why, and what to do."""
