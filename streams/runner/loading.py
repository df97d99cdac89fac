"""Finds what `MODULE_OR_FILE:NAME` names: agents, hooks and graders."""

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

MISSING = object()


def load_agent(spec: str) -> Agent:
    """The agent of a spec: a `@rollout` function, an `Agent` class (made without arguments), or an instance.

    The file's folder (or the working directory, for a module) comes first on `sys.path`, as Python does for a script,
    so that the agent finds its own modules whatever their names.

    Raises:
        AgentLoadError: says what is not there, and what is; of an error in the agent's own code, its traceback.
    """
    module, found = _find(spec, "MODULE_OR_FILE:AGENT, such as my_agent.py:agent")
    if found is MISSING:
        raise AgentLoadError(f"{spec.rpartition(':')[0]} has no {spec.rpartition(':')[2]!r}{_there_are(module)}")
    return _as_agent(found, spec)


def load_object(spec: str, example: str) -> Any:
    """Whatever a spec names; the module is found as an agent's is.

    Args:
        example: a spec that would do, for the message of an error.

    Raises:
        AgentLoadError: says what is not there; of an error in the module's own code, its traceback.
    """
    _, found = _find(spec, f"MODULE_OR_FILE:NAME, such as {example}")
    if found is MISSING:
        raise AgentLoadError(f"{spec.rpartition(':')[0]} has no {spec.rpartition(':')[2]!r}")
    return found


def _find(spec: str, form: str) -> tuple[ModuleType, Any]:
    place, _, name = spec.rpartition(":")
    if not place or not name:
        raise AgentLoadError(f"{spec!r}: write {form}")
    is_file = place.endswith(".py") or "/" in place or "\\" in place
    try:
        module = _from_file(Path(place)) if is_file else _from_module(place)
    except AgentLoadError:
        raise
    except Exception as error:  # whatever a user's file raises while it is imported
        raise AgentLoadError(f"{place} cannot be imported:\n{_own_traceback(error)}") from error
    try:
        return module, reduce(getattr, name.split("."), module)
    except AttributeError:
        return module, MISSING


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
    if not name.isidentifier() or (name in sys.modules and not _is_loaded(name, path)):
        name = f"headrace_agent_{abs(hash(path)):x}"
    if _is_loaded(name, path):  # a hook that stands beside its agent
        return sys.modules[name]
    described = importlib.util.spec_from_file_location(name, path)
    if described is None or described.loader is None:
        raise AgentLoadError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(described)
    sys.modules[name] = module
    try:
        described.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_loaded(name: str, path: Path) -> bool:
    return getattr(sys.modules.get(name), "__file__", None) == str(path)


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
