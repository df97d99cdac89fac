"""Kafka and a schema registry on one machine, from the package registries alone; see `broker.LocalKafka`."""
