"""Causal language models from Hugging Face directories, at the least cost of importing them."""
