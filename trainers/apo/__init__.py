"""Automatic prompt optimisation: beam search over prompts with textual gradients."""
