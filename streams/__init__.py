"""The runtime: topics, codec, Kafka clients, the agent API, runner and stream processors."""
