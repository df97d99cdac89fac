"""What was said in a model call, as OpenAI messages, from every convention that tells it."""
