"""How the vLLM server is started: its interpreter, its flags and its environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.streams.environments import variables_of

INSIDE = Path(__file__).resolve().parent / "inside"
# The folder whose name is headrace in any installation: headrace/connectors/vllm/command.py.
PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class VllmOptions:
    """What `headrace engine vllm` takes; extra goes to vLLM as it is."""

    model: Path
    port: int
    policy: str
    seed: int
    in_flight: str
    wait_model: float
    start_seconds: float
    extra: tuple[str, ...] = ()


def arguments(options: VllmOptions, port: int) -> list[str]:
    """The server's command line, after the interpreter. A flag in `extra` wins over the same one here."""
    flags: dict[str, Sequence[str]] = {
        "--model": [str(options.model.resolve())],
        "--served-model-name": [options.policy, str(options.model), options.model.name],
        "--host": ["127.0.0.1"],
        "--port": [str(port)],
        "--seed": [str(options.seed)],
        "--dtype": ["float32"],
        "--logprobs-mode": ["processed_logprobs"],
        "--generation-config": ["vllm"],
        "--enforce-eager": [],
        # A seeded request whose prompt is computed in parts ends the server on a CPU: vLLM rewinds the request's random
        # numbers by an offset, which torch's CPU generators have not.
        "--no-enable-chunked-prefill": [],
        "--max-logprobs": ["20"],
        "--worker-extension-cls": ["headrace_vllm.WorkerExtension"],
        "--middleware": ["headrace_vllm.Middleware"],
    }
    if "--enable-lora" in options.extra:
        # Requests under the version before and under the new one run side by side.
        flags["--max-loras"] = ["2"]
    given = {flag.split("=", 1)[0].replace("--no-", "--") for flag in options.extra if flag.startswith("--")}
    parts = ["-m", "vllm.entrypoints.openai.api_server"]
    for flag, values in flags.items():
        if flag.replace("--no-", "--") not in given or flag == "--middleware":
            parts += [flag, *values]
    return [*parts, *options.extra]


def variables(options: VllmOptions, events: int, scratch: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The server's environment; what the user has set for vLLM stays.

    events: the file descriptor that the middleware reports loads to.
    scratch: a folder of this server alone, for adapters.
    """
    defaults = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
    ours = {
        "HEADRACE_PACKAGE": str(PACKAGE),
        "HEADRACE_POLICY": options.policy,
        "HEADRACE_IN_FLIGHT": options.in_flight,
        "HEADRACE_EVENTS_FD": str(events),
        "HEADRACE_SCRATCH": scratch,
    }
    return {**defaults, **variables_of(INSIDE, environment), **ours}
