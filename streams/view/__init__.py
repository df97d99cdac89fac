"""The pipeline's state as SQL: a sink that writes rows and offsets in one SQL transaction, and what is asked of it."""
