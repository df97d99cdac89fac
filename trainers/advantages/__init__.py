"""Advantages: how much better a rollout, a call or a token did than was to be expected. Pure, numpy, float64."""
