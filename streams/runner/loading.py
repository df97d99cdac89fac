"""Finds the agent that `MODULE_OR_FILE:AGENT` names."""

import importlib
import importlib.util
import sys
import traceback
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from headrace.streams.agent.base import Agent, FunctionAgent
from headrace.streams.runner.errors import AgentLoadError


def load_agent(spec: str) -> Agent:
    """The agent of a spec: a `@rollout` function, an `Agent` class (made without arguments), or an instance.

    The file's folder (or the working directory, for a module) comes first on `sys.path`, as Python does for a script,
    so that the agent finds its own modules whatever their names.

    Raises:
        AgentLoadError: says what is not there, and what is; of an error in the agent's own code, its traceback.
    """
    place, _, name = spec.rpartition(":")
    if not place or not name:
        raise AgentLoadError(f"{spec!r}: write MODULE_OR_FILE:AGENT, such as my_agent.py:agent")
    is_file = place.endswith(".py") or "/" in place or "\\" in place
    try:
        module = _from_file(Path(place)) if is_file else _from_module(place)
    except AgentLoadError:
        raise
    except Exception as error:  # whatever a user's file raises while it is imported
        raise AgentLoadError(f"{place} cannot be imported:\n{_own_traceback(error)}") from error
    try:
        found: Any = reduce(getattr, name.split("."), module)
    except AttributeError:
        raise AgentLoadError(f"{place} has no {name!r}{_there_are(module)}") from None
    return _as_agent(found, spec)


def _own_traceback(error: Exception) -> str:
    """The traceback without the frames of import machinery."""
    told = traceback.TracebackException.from_exception(error, compact=True)
    own = [f for f in told.stack if f.filename != __file__ and "importlib" not in f.filename]
    told.stack = traceback.StackSummary.from_list(own)
    return "".join(told.format(chain=False)).rstrip()


def _from_file(path: Path) -> ModuleType:
    path = path.expanduser().resolve()
    if not path.is_file():
        raise AgentLoadError(f"there is no file {path}")
    _first_on_path(path.parent)
    name = path.stem
    if name in sys.modules or not name.isidentifier():
        name = f"headrace_agent_{abs(hash(path)):x}"
    described = importlib.util.spec_from_file_location(name, path)
    if described is None or described.loader is None:
        raise AgentLoadError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(described)
    sys.modules[name] = module
    described.loader.exec_module(module)
    return module


def _from_module(name: str) -> ModuleType:
    _first_on_path(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise  # the agent's own import fails
        hint = (
            f"; did you mean {name.replace('.', '/')}.py:...?" if Path(name.replace(".", "/") + ".py").exists() else ""
        )
        raise AgentLoadError(f"there is no module {name!r} on {Path.cwd()} or sys.path{hint}") from error


def _first_on_path(folder: Path) -> None:
    text = str(folder)
    if text in sys.path:
        sys.path.remove(text)
    sys.path.insert(0, text)


def _as_agent(found: Any, spec: str) -> Agent:
    if isinstance(found, Agent):
        return found
    if isinstance(found, type) and issubclass(cast(type[Any], found), Agent):
        try:
            return cast(type[Agent], found)()
        except TypeError as error:
            raise AgentLoadError(f"{spec}: {error}; name an instance instead") from error
    if callable(found):
        raise AgentLoadError(f"{spec} is a plain {type(found).__name__}: decorate it with @headrace.rollout")
    raise AgentLoadError(f"{spec} is a {type(found).__name__}, no agent")


def _there_are(module: ModuleType) -> str:
    agents = [
        name
        for name, value in vars(module).items()
        if isinstance(value, FunctionAgent) or (isinstance(value, Agent) or _is_agent_class(value))
    ]
    return f"; there are {', '.join(agents)}" if agents else ""


def _is_agent_class(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Agent) and value is not Agent
