"""How an agent does without training."""
