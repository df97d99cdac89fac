"""A lean HTTP/1.1 client for JSON services: the gateway calls engines by it, agents the gateway."""
