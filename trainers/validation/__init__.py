"""Validation: tasks of mode val on a schedule, and what they say of each version."""
