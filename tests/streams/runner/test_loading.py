import sys
from pathlib import Path

import pytest

from headrace.streams.agent.base import Agent, FunctionAgent
from headrace.streams.runner.errors import AgentLoadError
from headrace.streams.runner.loading import load_agent

SOURCE = """
from headrace import Agent, rollout
from schemas.mine import ANSWER
from streams import helper

@rollout
async def agent(task):
    return ANSWER + helper.MORE

class Worker(Agent):
    def rollout(self, task, resources, rollout):
        return 1.0

class Needy(Agent):
    def __init__(self, what):
        self.what = what

instance = Worker()
def plain(task): return 1
number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent's folder that has packages with the names of ours."""
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "__init__.py").write_text("")
    (tmp_path / "schemas" / "mine.py").write_text("ANSWER = 41")
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "__init__.py").write_text("")
    (tmp_path / "streams" / "helper.py").write_text("MORE = 1")
    (tmp_path / "my_agent.py").write_text(SOURCE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [n for n in sys.modules if n.split(".")[0] in ("schemas", "streams", "my_agent")]:
        monkeypatch.delitem(sys.modules, name)
    yield tmp_path
    for name in [n for n in sys.modules if n.split(".")[0] in ("schemas", "streams", "my_agent")]:
        del sys.modules[name]


async def test_a_file_in_a_folder_with_packages_named_like_ours(folder: Path) -> None:
    agent = load_agent(f"{folder}/my_agent.py:agent")
    assert isinstance(agent, FunctionAgent)
    assert await agent(1) == 42


def test_a_module_of_the_working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert isinstance(load_agent("my_agent:Worker"), Agent)
    assert isinstance(load_agent("my_agent:instance"), Agent)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("my_agent.py", "MODULE_OR_FILE:AGENT"),
        ("nowhere.py:agent", "no file"),
        ("no_such_module:agent", "no module 'no_such_module'"),
        ("my_agent.py:agnet", "no 'agnet'; there are agent, Worker, Needy, instance"),
        ("my_agent.py:plain", "decorate it with @headrace.rollout"),
        ("my_agent.py:number", "is a int, no agent"),
        ("my_agent.py:Needy", "name an instance instead"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch, spec: str, says: str) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(AgentLoadError, match=says):
        load_agent(spec)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import does_not_exist_anywhere", "ModuleNotFoundError: No module named 'does_not_exist_anywhere'"),
        ("def agent(:", "SyntaxError"),
        ("x = 1\n1 / 0", r"(?s)broken.py.*, line 2, .*ZeroDivisionError"),
    ],
)
def test_errors_of_the_agents_own_code_are_told_with_their_place(folder: Path, text: str, says: str) -> None:
    (folder / "broken.py").write_text(text)
    with pytest.raises(AgentLoadError, match=says) as told:
        load_agent(f"{folder / 'broken.py'}:agent")
    assert "cannot be imported" in str(told.value)
    assert "importlib" not in str(told.value)
