"""Options of a runner that do not go together: said before anything is started."""

import pytest

from headrace.streams.errors import SettingsError
from headrace.streams.runner.options import Isolation, RunnerOptions


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"share_group": True}, "KIP-1222"),
        ({"static": True}, "--worker-id"),
        ({"isolation": Isolation.PROCESS}, "MODULE_OR_FILE:AGENT"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(options: dict, word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        RunnerOptions(**options)
