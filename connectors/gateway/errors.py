"""What the gateway answers when a call fails, in OpenAI's form."""

from typing import Any

import orjson

from headrace.streams.errors import HeadraceError

BAD_REQUEST = 400
NOT_FOUND = 404
METHOD_NOT_ALLOWED = 405
TOO_LARGE = 413
BAD_GATEWAY = 502
UNAVAILABLE = 503
GATEWAY_TIMEOUT = 504


class CallError(HeadraceError):
    """A call that is answered with an error.

    Attributes:
        status: HTTP status of the answer.
        code: a short name, the same in the answer and in the span.
        param: the parameter at fault.
    """

    def __init__(self, status: int, code: str, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param

    def body(self) -> bytes:
        """The JSON of the answer."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        error: dict[str, Any] = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        return orjson.dumps({"error": error})


def garbage(message: str) -> CallError:
    """An engine answered something that is no chat completion."""
    return CallError(BAD_GATEWAY, "engine_garbage", message)
