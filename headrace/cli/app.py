"""The command's root: finds the command that was asked for, and turns errors into one line and an exit code."""

import importlib
import logging
import os
import sys
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from headrace.streams.errors import EXIT_FENCED, EXIT_USAGE, FencedError, HeadraceError, InvalidValueError

COMMANDS: dict[str, tuple[str, str]] = {
    # name: (module under headrace.cli, what it does)
    "demo": ("demo", "Start everything on this machine and watch a model learn."),
    "up": ("up", "Run the parts of a pipeline on this machine, from one file."),
    "broker": ("broker", "Run a local Kafka, and a schema registry with --registry."),
    "topics": ("topics", "Make, list and check the pipeline's topics."),
    "schemas": ("schemas", "Show, register and check the Avro schemas."),
    "tasks": ("tasks", "Produce tasks."),
    "rollouts": ("rollouts", "See how rollouts stand, and cancel them."),
    "runner": ("runner", "Run an agent on tasks."),
    "processor": ("processor", "Run a stream processor."),
    "workers": ("workers", "See which processes are there."),
    "gateway": ("gateway", "Run the OpenAI-compatible gateway that records every call."),
    "keys": ("keys", "Say who may call the gateway."),
    "otlp": ("otlp", "Take the traces of instrumented agents by OTLP."),
    "feedback": ("feedback", "Judge a rollout, however long after it."),
    "engine": ("engine", "Serve a model."),
    "sync": ("sync", "Load published weights into the engines."),
    "trainer": ("trainer", "Train a policy from triplets."),
    "promote": ("promote", "Give production engines a validated version."),
    "validate": ("validate", "Validate a training run's versions, on a schedule."),
    "metrics": ("metrics", "Write a training run's metrics for TensorBoard, or as JSON."),
    "replay": ("replay", "Train a run again from the log, and compare the weights."),
    "model": ("model", "Make the small model of the demo."),
    "view": ("view", "Care for the view's database."),
    "traces": ("traces", "See what rollouts did, span by span."),
    "dlq": ("dlq", "Read and replay dead letters."),
    "bench": ("bench", "Measure a pipeline under a known load."),
}
LOUD = ("httpx", "httpx2", "faust", "mode", "aiokafka")  # they log each request, or each part that starts, at INFO
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


class LazyGroup(TyperGroup):
    """Imports a command's module when the command is called; `--help` of the root imports none."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All commands, in the catalogue's order."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name."""
        if cmd_name not in COMMANDS:
            return None
        if ctx.resilient_parsing or not _called(cmd_name):
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name][1])
        return load(cmd_name)


def _called(name: str) -> bool:
    return name in sys.argv[1:]


def load(name: str) -> Any:
    """The click command of `headrace NAME`; its module has a Typer `app`, or a function of the command's name."""
    module: Any = importlib.import_module(f"headrace.cli.{COMMANDS[name][0]}")
    command: Any = typer.main.get_command(module.app)
    command.name = name
    command.help = command.help or COMMANDS[name][1]
    return command


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def root(verbose: bool = typer.Option(False, "--verbose", "-v", help="Log debugging messages too.")) -> None:
    """Headrace trains AI agents from a Kafka log."""
    level = "DEBUG" if verbose else os.environ.get("HEADRACE_LOG_LEVEL", "INFO")
    logging.basicConfig(level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if not verbose:
        for name in LOUD:
            logging.getLogger(name).setLevel("WARNING")


def main() -> None:
    """Runs the command; a `HeadraceError` is one line on stderr and exit code 1 (2: a bad value; 78: fenced)."""
    try:
        app()
    except KeyboardInterrupt:  # while a command is imported; what runs has handlers of its own
        raise SystemExit(EXIT_INTERRUPTED) from None
    except FencedError as error:
        print(f"headrace: {error}", file=sys.stderr)
        raise SystemExit(EXIT_FENCED) from None
    except InvalidValueError as error:
        print(f"headrace: {error}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE) from None
    except HeadraceError as error:
        print(f"headrace: {error}", file=sys.stderr)
        raise SystemExit(EXIT_FAILED) from None
