"""The settings of the assembler, told by each trajectory."""

import msgspec
import pytest

from headrace.streams.assembly.settings import AssemblySettings, settings_header, settings_of_header


def test_defaults_need_no_header_and_others_come_back() -> None:
    assert settings_header(AssemblySettings(settle_seconds=9.0)) == []
    assert settings_of_header(None) == settings_of_header([]) == AssemblySettings()
    chosen = AssemblySettings(agent_match="planner|coder", reward_policy="final_only", conversations=True)
    header = settings_header(chosen)
    assert header == [
        ("assembler", b'{"agent_match":"planner|coder","conversations":true,"reward_policy":"final_only"}')
    ]
    assert settings_of_header([("traceparent", b"00-1"), *header]) == chosen
    assert settings_of_header([("assembler", b'{"of_a_newer_version":1}')]) == AssemblySettings()
    with pytest.raises(msgspec.DecodeError):
        settings_of_header([("assembler", b"final_only")])
