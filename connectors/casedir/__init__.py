"""Recorded traces in a directory: read, replayed through the assembler, and told as JSON."""
