"""A run trained again from the log."""
