"""What the gateway answers when a call fails, in OpenAI's form."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import orjson

from headrace.streams.errors import HeadraceError

OK = 200
BAD_REQUEST = 400
NOT_FOUND = 404
METHOD_NOT_ALLOWED = 405
TOO_LARGE = 413
UNSUPPORTED_MEDIA = 415
TOO_MANY = 429
SERVER_ERROR = 500
BAD_GATEWAY = 502
UNAVAILABLE = 503
GATEWAY_TIMEOUT = 504
STATUS_END = 600
RETRY_AFTER = "1"  # seconds: a call waits here itself, for engines and for brokers


class CallError(HeadraceError):
    """A call that is answered with an error.

    Attributes:
        status: HTTP status of the answer.
        code: a short name, the same in the answer and in the span.
        param: the parameter at fault.
        retry_after: value of the Retry-After header of the answer.
    """

    def __init__(
        self, status: int, code: str, message: str, *, param: str | None = None, retry_after: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.param, self.retry_after = status, code, param, retry_after

    def body(self) -> bytes:
        """The JSON of the answer."""
        kind = "invalid_request_error" if self.status < SERVER_ERROR else "server_error"
        error: dict[str, Any] = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        return orjson.dumps({"error": error})


class EngineRefusal(CallError):
    """An engine answered with an error of its own.

    Attributes:
        given: its body, in OpenAI's form where it is JSON.
    """

    def __init__(
        self,
        status: int,
        message: str,
        given: bytes | None,
        retry_after: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(status, "engine_error", message, param=param, retry_after=retry_after)
        self.given = given

    @property
    def busy(self) -> bool:
        """Whether the engine may take the same call later, or another engine now."""
        return self.status in (TOO_MANY, UNAVAILABLE)

    def body(self) -> bytes:
        return self.given or super().body()


def unavailable(code: str, message: str) -> CallError:
    """What the call needs is away; the same call may be made again."""
    return CallError(UNAVAILABLE, code, message, retry_after=RETRY_AFTER)


def garbage(message: str) -> CallError:
    """An engine answered something that is no completion."""
    return CallError(BAD_GATEWAY, "engine_garbage", message)


# What reading values of another shape than was foreseen leads to. TypeError is also orjson's for values nested too
# deeply: it reads 1,024 levels and writes 254.
BROKEN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def broken(what: str, error: Exception) -> CallError:
    """What an engine gave is broken in a way nobody foresaw.

    Args:
        what: has failed.
        error: one of `BROKEN`.
    """
    return garbage(f"{what}: {repr(error)[:200]}")


@contextmanager
def garbage_if_broken(what: str) -> Generator[None]:
    """Within it, what an engine gives that is broken in a way nobody foresaw is the engine's fault.

    Args:
        what: has failed.

    Raises:
        CallError: 502.
    """
    try:
        yield
    except BROKEN as error:
        raise broken(what, error) from error


def engine_refusal(status: int, raw: bytes, retry_after: str | None) -> EngineRefusal:
    """An engine's own error, passed on as it is where it is JSON."""
    try:
        value = orjson.loads(raw)
        message = str(value["error"]["message"])
        param = value["error"].get("param")
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        text = raw[:200].decode("utf-8", "replace")
        if SERVER_ERROR <= status != UNAVAILABLE:
            status = BAD_GATEWAY
        return EngineRefusal(status, f"the engine answered {status}: {text}", None, retry_after)
    return EngineRefusal(status, message, raw, retry_after, param if isinstance(param, str) else None)
