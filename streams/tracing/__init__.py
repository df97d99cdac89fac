"""Tracing of agents by OpenTelemetry: their libraries' spans as Span records. Imported only where it is asked for."""
