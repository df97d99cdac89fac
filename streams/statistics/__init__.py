"""Live statistics: rates, rewards, staleness and lag for a display. Approximate by design, and never what decides."""
