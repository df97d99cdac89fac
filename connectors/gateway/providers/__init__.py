"""Models of other providers (OpenAI, Anthropic, Bedrock, ...), called by LiteLLM as a library."""
