"""A search's model behind an OpenAI-compatible URL."""

from aiohttp import web
from aiohttp.test_utils import TestServer

from headrace.trainers.apo.model import OpenAIModel


async def test_a_completion_is_asked_for_again_when_the_server_is_busy() -> None:
    asked: list[dict[str, object]] = []

    async def complete(request: web.Request) -> web.Response:
        asked.append(await request.json())
        if len(asked) == 1:
            return web.json_response({"error": {"message": "busy"}}, status=503, headers={"retry-after-ms": "1"})
        answer = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "be brief"}}
        return web.json_response(
            {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [answer]}
        )

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    async with TestServer(app) as server:
        model = OpenAIModel(str(server.make_url("/v1")))
        assert await model([{"role": "user", "content": "x"}], model="m", temperature=0.5) == "be brief"
    assert asked[-1] == {"messages": [{"role": "user", "content": "x"}], "model": "m", "temperature": 0.5}
    assert len(asked) == 2
