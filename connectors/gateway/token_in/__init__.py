"""Token-in continuation: the prompt of a turn is the ids of the turn before, as they were sampled, and what is new."""
