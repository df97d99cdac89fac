"""What a run's records say, for tools that draw curves."""
