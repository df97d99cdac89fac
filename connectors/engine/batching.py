"""Continuous batching: requests join and leave between decode steps, and so do new weights."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import torch
from torch import Tensor

from headrace.connectors.engine.backend import Backend
from headrace.connectors.engine.sampling import Sampling, sample, stream_key, uniform

InFlight = Literal["wait", "keep", "abort"]
# Prompt tokens computed in one step, so that a crowd of long prompts does not hold up those who are decoding.
PREFILL_TOKENS = 8192


@dataclass(slots=True)
class Generation:
    """One choice while it is generated; token and log-probability lists grow together.

    While a step runs, in a thread of its own, who streams may read no further than `settled`.

    Attributes:
        settled: tokens that steps which are over have generated.
        ended: there will be no more.
    """

    key: int
    sampling: Sampling
    max_tokens: int
    stop_ids: frozenset[int]
    find_stop: Callable[[list[int]], tuple[str, str] | None] | None
    top_logprobs: int
    token_ids: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])
    alternatives: list[list[tuple[int, float]]] = field(default_factory=list[list[tuple[int, float]]])
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    text: str | None = None
    version_min: int = -1
    version_max: int = -1
    weights_id: str | None = None
    settled: int = 0
    ended: bool = False


@dataclass(slots=True)
class Job:
    """One request: its choices share the prompt, and `done` is set when all of them have ended.

    Attributes:
        stepped: set after each step that generated for it; None where nobody waits for that.
        left: choices that have not ended.
        cancelled: nobody waits for it any more.
    """

    prompt: tuple[int, ...]
    choices: list[Generation]
    done: asyncio.Future[None]
    left: int = 0
    stepped: asyncio.Event | None = None
    cancelled: bool = False


@dataclass(slots=True)
class _Swap:
    prepared: Any
    version: int
    weights_id: str | None
    done: asyncio.Future[None]


@dataclass(slots=True)
class Counters:
    """Sums since the start; seconds are those of the generation thread."""

    requests: int = 0
    choices: int = 0
    tokens: int = 0
    steps: int = 0
    loads: int = 0
    cancelled: int = 0
    seconds: float = 0.0

    def whole(self) -> dict[str, int]:
        """The counts, without the times."""
        names = ("requests", "choices", "tokens", "steps", "loads", "cancelled")
        return {name: getattr(self, name) for name in names}

    def reset(self) -> None:
        """Counts from zero again."""
        self.requests = self.choices = self.tokens = self.steps = self.loads = self.cancelled = 0
        self.seconds = 0.0


def new_choice(seed: int, index: int, sampling: Sampling, max_tokens: int, stop_ids: frozenset[int]) -> Generation:
    """A choice of a request that has no stop strings and asks for no alternatives."""
    return Generation(stream_key(seed, index), sampling, max_tokens, stop_ids, None, 0)


class Batcher:
    """Owns the model. One step runs at a time, in a thread of its own, while the event loop reads further requests.

    in_flight: what becomes of unfinished requests when weights are swapped. wait: they finish first, and what came
    after the swap was asked for waits for it; keep: they go on with the new weights on the old cache; abort: they end
    with what they have.
    """

    def __init__(
        self, backend: Backend, vocabulary: int, *, max_batch: int, in_flight: InFlight, wait_seconds: float
    ) -> None:
        self.max_batch = max_batch
        self.version = 0
        self.weights_id: str | None = None
        self.counters = Counters()
        self._backend, self._vocabulary = backend, vocabulary
        self._in_flight, self._wait_seconds = in_flight, wait_seconds
        self._waiting: deque[Job] = deque()
        self._rows: list[tuple[Job, Generation]] = []
        self._swap: _Swap | None = None
        self._cancelled = False
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="generation")

    @property
    def running(self) -> int:
        """Choices being generated or waiting for their turn."""
        return len(self._rows) + sum(len(job.choices) for job in self._waiting)

    async def generate(self, prompt: tuple[int, ...], choices: list[Generation]) -> None:
        """Fills the choices; returns when all of them have ended. Who is cancelled while it waits frees their place."""
        job = self._submit(prompt, choices, None)
        try:
            await job.done
        finally:
            self._leave(job)

    async def stream(self, prompt: tuple[int, ...], choices: list[Generation]) -> AsyncGenerator[None]:
        """Fills the choices; yields after each step, also the last. Closed before that, as `generate`."""
        stepped = asyncio.Event()
        job = self._submit(prompt, choices, stepped)
        try:
            while not job.done.done() or stepped.is_set():
                await stepped.wait()
                stepped.clear()
                yield
        finally:
            self._leave(job)

    def _submit(self, prompt: tuple[int, ...], choices: list[Generation], stepped: asyncio.Event | None) -> Job:
        job = Job(prompt, choices, asyncio.get_running_loop().create_future(), len(choices), stepped)
        self.counters.requests += 1
        self._waiting.append(job)
        self._wake.set()
        return job

    def _leave(self, job: Job) -> None:
        if job.left:
            job.cancelled = self._cancelled = True
            self.counters.cancelled += 1
            self._wake.set()

    async def swap(self, prepared: Any, version: int, weights_id: str | None) -> None:
        """Installs weights between two steps; returns when every later token comes from them. One call at a time."""
        swap = self._swap = _Swap(prepared, version, weights_id, asyncio.get_running_loop().create_future())
        self._wake.set()
        await swap.done

    async def run(self) -> None:
        """Works until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            if self._cancelled:
                self._forget()
            if self._swap is not None and (not self._rows or self._in_flight != "wait"):
                self._apply(self._swap)
            joining = [] if self._swap is not None else self._admit()
            if not joining and not self._rows:
                await self._idle()
                continue
            ended = await loop.run_in_executor(self._thread, self._step, joining)
            self._settle(ended)
            self._tell()

    async def _idle(self) -> None:
        self._wake.clear()
        if self._waiting or self._swap is not None or self._cancelled:
            return
        await self._wake.wait()
        if self._wait_seconds and self._swap is None:
            # A burst is one batch: its equal prompts are computed once.
            await asyncio.sleep(self._wait_seconds)

    @torch.inference_mode()
    def _forget(self) -> None:
        """Frees the rows of those who have left."""
        self._cancelled = False
        self._waiting = deque(job for job in self._waiting if not job.cancelled)
        alive = [not job.cancelled for job, _ in self._rows]
        if not all(alive):
            self._keep(alive)

    def _keep(self, alive: list[bool]) -> None:
        order = _fill_holes(alive)
        self._backend.keep(order)
        self._rows = [self._rows[i] for i in order]

    def _admit(self) -> list[Job]:
        joining: list[Job] = []
        rows, tokens = len(self._rows), 0
        while self._waiting:
            job = self._waiting[0]
            rows, tokens = rows + len(job.choices), tokens + len(job.prompt)
            if rows > self.max_batch or (joining and tokens > PREFILL_TOKENS):
                break
            joining.append(self._waiting.popleft())
        return joining

    def _apply(self, swap: _Swap) -> None:
        self._swap = None
        if self._in_flight == "abort":
            for _, choice in self._rows:
                choice.finish_reason = "abort"
            self._settle(self._rows)
            self._rows = []
            self._backend.keep([])
        self._backend.install(swap.prepared)
        self.version, self.weights_id = swap.version, swap.weights_id
        self.counters.loads += 1
        swap.done.set_result(None)

    @torch.inference_mode()
    def _step(self, joining: list[Job]) -> list[tuple[Job, Generation]]:
        """One token for each row, the new ones included; returns the rows that ended."""
        began = time.thread_time()
        logits: list[Tensor] = []
        if self._rows:
            logits.append(self._backend.decode(torch.tensor([choice.token_ids[-1] for _, choice in self._rows])))
        if joining:
            logits.append(self._prefill(joining))
        self._extend(torch.cat(logits)[:, : self._vocabulary])
        ended = [row for row in self._rows if row[1].finish_reason is not None]
        if ended:
            self._keep([choice.finish_reason is None for _, choice in self._rows])
        self.counters.steps += 1
        self.counters.seconds += time.thread_time() - began
        return ended

    def _prefill(self, joining: list[Job]) -> Tensor:
        by_prompt: dict[tuple[int, ...], list[Job]] = {}
        for job in joining:
            by_prompt.setdefault(job.prompt, []).append(job)
        copies = [sum(len(job.choices) for job in jobs) for jobs in by_prompt.values()]
        self._rows += [(job, choice) for jobs in by_prompt.values() for job in jobs for choice in job.choices]
        return self._backend.prefill(list(by_prompt), copies)

    def _extend(self, logits: Tensor) -> None:
        choices = [choice for _, choice in self._rows]
        uniforms = [uniform(choice.key, len(choice.token_ids)) for choice in choices]
        tokens, logprobs = sample(logits, [choice.sampling for choice in choices], uniforms)
        chosen = logprobs.gather(1, tokens[:, None])[:, 0]
        widest = max(choice.top_logprobs for choice in choices)
        top = _lists(*logprobs.topk(widest)) if widest else None
        self.counters.tokens += len(choices)
        for i, (choice, token, logprob) in enumerate(zip(choices, *_lists(tokens, chosen), strict=True)):
            if not choice.token_ids:
                choice.version_min = self.version
            choice.version_max, choice.weights_id = self.version, self.weights_id
            choice.token_ids.append(token)
            choice.logprobs.append(logprob)
            if choice.top_logprobs and top:
                values, ids = (column[i][: choice.top_logprobs] for column in top)
                choice.alternatives.append(list(zip(ids, values, strict=True)))
            _finish(choice, token)

    def _settle(self, ended: list[tuple[Job, Generation]]) -> None:
        for job, choice in ended:
            self.counters.choices += 1
            choice.settled, choice.ended = len(choice.token_ids), True
            if job.stepped is not None:
                job.stepped.set()
            job.left -= 1
            if job.left == 0 and not job.done.done():
                job.done.set_result(None)

    def _tell(self) -> None:
        for job, choice in self._rows:
            if job.stepped is not None:
                choice.settled = len(choice.token_ids)
                job.stepped.set()


def _finish(choice: Generation, token: int) -> None:
    if token in choice.stop_ids:
        choice.finish_reason = "stop"
    elif choice.find_stop and (found := choice.find_stop(choice.token_ids)):
        choice.finish_reason = "stop"
        choice.text, choice.stop_reason = found
    elif len(choice.token_ids) >= choice.max_tokens:
        choice.finish_reason = "length"


def _lists(*tensors: Tensor) -> list[list[Any]]:
    return [cast("list[Any]", tensor.tolist()) for tensor in tensors]  # pyright: ignore[reportUnknownMemberType]


def _fill_holes(alive: list[bool]) -> list[int]:
    """The rows that stay, with as few as possible in a new place: holes are filled from the end."""
    count = sum(alive)
    tail = [i for i in range(count, len(alive)) if alive[i]]
    return [i if alive[i] else tail.pop() for i in range(count)]
