"""Supervised fine-tuning on what went well: rejection sampling."""
