"""What the search says to its models. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.trainers.apo.model import Messages

CRITIQUE = (
    "You review prompt templates for agents. Say what in the template led to the low rewards below: what is ambiguous, "
    "missing, wrong or superfluous. Do not rewrite it. Answer with a short list, the most important point first.",
    "You are a demanding colleague. For each experiment below, find which words of the prompt template, or which "
    "missing words, made the agent go wrong, or nearly so. Then name at most five weaknesses that several experiments "
    "share. Do not write a new template.",
    "Compare the experiments below that went well with those that went badly. What should the prompt template have "
    "told the agent that would have made the bad ones good, without harm to the good ones? Answer in a few sentences; "
    "do not rewrite the template.",
)
EDIT = (
    "You improve prompt templates. Rewrite the template so that it heeds the whole criticism, keeping what works.",
    "You improve prompt templates. Choose the one point of the criticism that matters most, and change the template as "
    "little as possible so that it heeds that point.",
)
RULES = {
    "f-string": "Its placeholders are Python's, such as {name}; a brace that is meant as text is doubled.",
    "jinja": "It is a Jinja template, with placeholders such as {{ name }}.",
    "poml": "It is POML, an XML-like markup, with placeholders such as {{ name }}; keep it well-formed.",
}
CUT = "\n[...]\n"


@dataclass(frozen=True, slots=True)
class Experiment:
    """One rollout as the critic sees it."""

    task: Any
    status: str
    reward: float | None
    conversation: Sequence[dict[str, Any]]


def critique_messages(template: str, experiments: Sequence[Experiment], limit: int, instruction: str) -> Messages:
    """Asks for the textual gradient of a template (ProTeGi, arXiv:2305.03495).

    Args:
        instruction: one of `CRITIQUE`.
        limit: most characters of one experiment's conversation.
    """
    shown = "\n\n".join(_shown(number, experiment, limit) for number, experiment in enumerate(experiments, 1))
    return [
        {"role": "system", "content": instruction},
        {"role": "user", "content": f"# Prompt template\n\n{template}\n\n# Experiments\n\n{shown}"},
    ]


def edit_messages(template: str, engine: str, criticism: str, instruction: str) -> Messages:
    """Asks for the template with a criticism applied; `instruction` is one of `EDIT`."""
    rules = (
        f"{RULES[engine]} Keep exactly the same placeholders: the agent fills in these and no others. "
        "Answer with the new template and nothing else."
    )
    return [
        {"role": "system", "content": f"{instruction} {rules}"},
        {"role": "user", "content": f"# Prompt template\n\n{template}\n\n# Criticism\n\n{criticism}"},
    ]


def _shown(number: int, experiment: Experiment, limit: int) -> str:
    reward = "none" if experiment.reward is None else f"{experiment.reward:g}"
    told = "\n".join(_line(message) for call in experiment.conversation[-1:] for message in call.get("messages", ()))
    return (
        f"## Experiment {number}\n"
        f"Task: {_cut(json.dumps(experiment.task, ensure_ascii=False), limit)}\n"
        f"Reward: {reward} ({experiment.status})\n"
        f"Conversation:\n{_cut(told, limit) or '(none was recorded)'}"
    )


def _line(message: dict[str, Any]) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False) if content else ""
    calls = "".join(
        f" [calls {call.get('function', {}).get('name')} {call.get('function', {}).get('arguments')}]"
        for call in message.get("tool_calls") or ()
    )
    return f"{message.get('role')}: {text}{calls}"


def _cut(text: str, limit: int) -> str:
    """The beginning and the end of a text: what was asked, and what came of it."""
    if len(text) <= limit:
        return text
    half = (limit - len(CUT)) // 2
    return text[:half] + CUT + text[-half:]
