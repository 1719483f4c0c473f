"""What a run did, for people: an HTML page, and a table for the log."""
