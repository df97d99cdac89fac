"""Keys: the file, who is let in, and how often."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from headrace.connectors.gateway.errors import CallError
from headrace.connectors.gateway.keys.guard import ANYBODY, Guard
from headrace.connectors.gateway.keys.store import CALL, FEEDBACK, KeyFileError, create_key, read_keys, revoke_key


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def refused(guard: Guard, headers: dict[str, str], scope: str = CALL) -> tuple[int, str, str | None]:
    with pytest.raises(CallError) as error, guard.admit(headers, scope):
        pass
    assert not any(value in str(error.value) for value in headers.values())
    return error.value.status, error.value.code, error.value.retry_after


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_only_a_hash_is_kept_for_its_owner_alone(path: Path):
    key, secret = create_key(path, "shop", scopes=[FEEDBACK, CALL])
    content = path.read_text()
    assert secret not in content
    assert secret.split("_", 2)[2] not in content
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_keys(path) == [key]
    assert (key.name, key.scopes) == ("shop", (CALL, FEEDBACK))
    second, _ = create_key(path, "second")
    assert [k.id for k in read_keys(path)] == [key.id, second.id]


def test_who_is_let_in(path: Path):
    key, secret = create_key(path, "shop", scopes=[CALL])
    guard = Guard(path)
    for headers in (bearer(secret), {"authorization": f"bearer {secret}"}, {"x-api-key": secret}):
        with guard.admit(headers, CALL) as grant:
            assert (grant.key_id, grant.train) == (key.id, False)
    assert refused(guard, {})[:2] == (401, "missing_api_key")
    assert refused(guard, bearer("none"))[:2] == (401, "invalid_api_key")
    assert refused(guard, bearer(secret[:-1]))[:2] == (401, "invalid_api_key")
    assert refused(guard, bearer(secret + "x"))[:2] == (401, "invalid_api_key")
    assert refused(guard, bearer("hr_" + "x" * 5000))[:2] == (401, "invalid_api_key")
    assert refused(guard, {"authorization": f"Basic {secret}"})[:2] == (401, "missing_api_key")
    assert refused(guard, bearer(secret), FEEDBACK)[:2] == (403, "insufficient_scope")


def test_without_a_file_anybody():
    with Guard(None).admit({}, CALL) as grant:
        assert grant is ANYBODY


def test_requests_a_minute(path: Path):
    _, secret = create_key(path, "shop", requests_per_minute=3)
    clock = Clock()
    guard = Guard(path, clock)

    def admitted() -> int:
        """How many are let in before one is refused."""
        for count in range(10):
            try:
                with guard.admit(bearer(secret), CALL):
                    pass
            except CallError:
                return count
        return 10

    assert admitted() == 3
    assert refused(guard, bearer(secret)) == (429, "rate_limit_exceeded", "20")
    clock.now += 20
    assert admitted() == 1
    clock.now += 3600
    assert admitted() == 3


def test_calls_at_once(path: Path):
    _, secret = create_key(path, "shop", concurrent=2)
    guard = Guard(path)
    with guard.admit(bearer(secret), CALL), guard.admit(bearer(secret), CALL):
        assert refused(guard, bearer(secret)) == (429, "rate_limit_exceeded", "1")
    with guard.admit(bearer(secret), CALL):
        pass


def test_the_file_is_read_again_when_it_changes_and_a_broken_one_changes_nothing(path: Path):
    key, secret = create_key(path, "first")
    clock = Clock()
    guard = Guard(path, clock)
    _, second = create_key(path, "second")
    clock.now += 2
    with guard.admit(bearer(second), CALL):
        pass
    for content in ("{", '{"keys": [{}]}'):
        path.with_suffix(".new").write_text(content)
        os.replace(path.with_suffix(".new"), path)
        clock.now += 2
        with guard.admit(bearer(second), CALL):
            pass
    path.unlink()
    clock.now += 2
    with guard.admit(bearer(second), CALL):
        pass
    del key
    third, secret = create_key(path, "third")
    clock.now += 2
    with guard.admit(bearer(secret), CALL):
        pass
    assert refused(guard, bearer(second))[0] == 401
    revoke_key(path, third.id)
    clock.now += 2
    assert refused(guard, bearer(secret))[:2] == (401, "invalid_api_key")


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"keys": [{"id": 1}]}', b"\xff"])
def test_a_file_that_cannot_be(path: Path, content: Any):
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(KeyFileError):
        Guard(path)


def test_revoking_what_is_not_there(path: Path):
    create_key(path, "first")
    with pytest.raises(KeyFileError, match="no key 'x'"):
        revoke_key(path, "x")
