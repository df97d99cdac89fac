"""APIs beside OpenAI's chat completions, each translated to them and back by pure functions."""
