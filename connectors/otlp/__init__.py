"""OpenTelemetry's wire protocol: traces of instrumented agents come in as Span and Reward records."""
