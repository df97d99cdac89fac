"""The runner: takes tasks from the log, calls the agent, and writes what happened."""
