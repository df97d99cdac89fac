"""What a runner has in hand, what has ended, and how far the tasks are finished: bookkeeping without any I/O."""
