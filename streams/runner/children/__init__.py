"""Child processes that run agents: what an agent does to its process stays there."""
