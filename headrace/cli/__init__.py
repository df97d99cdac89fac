"""The command `headrace`: one file a command group, each imported only when it is called."""

from headrace.cli.app import main

__all__ = ["main"]
