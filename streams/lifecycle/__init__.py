"""How a rollout stands: a pure state machine over tasks and attempt events, and the loop that runs it."""
