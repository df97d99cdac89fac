"""The OpenAI-compatible gateway: forwards model calls to engines and writes a span of each before it answers."""
