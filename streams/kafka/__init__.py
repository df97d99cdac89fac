"""Kafka at the edge: the client factory, transactions, barriers, followers, dead letters, admin and the log's clock."""
