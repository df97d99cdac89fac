"""Typed records, one for each Avro record. Generated from the `.avsc` files."""

from typing import ClassVar

import msgspec


class Record(msgspec.Struct, kw_only=True):
    """A record of a topic. `SCHEMA` names its Avro schema.

    Records hold values alone, so none can stand in a cycle, and the garbage collector tracks none (`gc=False`).
    """

    SCHEMA: ClassVar[str] = ""


class Part(msgspec.Struct, kw_only=True):
    """A record that stands inside others."""


class LogPosition(Part, kw_only=True, gc=False):
    """A record of a topic that the context names."""

    partition: int
    offset: int


class Source(Part, kw_only=True, gc=False):
    """The records of one rollout, as offsets in its partition of each topic."""

    partition: int
    attempts: bytes = b""
    spans: bytes = b""
    rewards: bytes = b""


class Assembled(Record, kw_only=True, gc=False):
    """The assembler's memory of one rollout. Topic: assembled, key: rollout_id, compacted."""

    SCHEMA: ClassVar[str] = "Assembled"
    rollout_id: str
    state: str  # open, waiting or closed
    attempt_id: str | None = None
    trajectory: LogPosition | None = None
    revision: int = -1
    reward_ids: list[str] = []
    source: Source
    segment: int = 1  # the last segment of an external rollout
    traces: bytes = (
        b""  # of an external rollout: hashes of eight bytes, of the traces in it and in its earlier segments
    )
    at: int  # microseconds since the epoch, UTC


class TaskFacts(Part, kw_only=True, gc=False):
    """The facts of the task, for readers that do not read tasks."""

    offset: int | None = None
    origin: str = "task"  # task or external
    session_id: str | None = None
    group_id: str | None = None
    group_size: int = 1
    sample_index: int = 0
    mode: str | None = None  # train, val or test
    run_id: str | None = None
    resources_id: str | None = None
    input: str = "null"  # a JSON value as text


class ErrorInfo(Part, kw_only=True, gc=False):
    """An exception as it left the code that raised it."""

    type: str
    message: str = ""
    stacktrace: str | None = None


class AttemptEvent(Record, kw_only=True, gc=False):
    """What happened to an attempt; the partition of these is the judge of every rollout. Topic: attempts, key: rollout_id."""

    SCHEMA: ClassVar[str] = "AttemptEvent"
    rollout_id: str
    attempt_id: str | None = None
    attempt: int = 1  # counts from 1; 0 on a cancel request
    delivery: int = 1
    type: str  # started, heartbeat, activity, succeeded, failed, timeout, unresponsive, lost, cancel_requested or cancelled
    final: bool = False  # on an end: no retry follows
    complete: bool = False  # on an end: all that belongs to the attempt was acked before it
    task: TaskFacts | None = None
    lost_reason: str | None = None  # lease, given_back or child_died
    child_deaths: int = 0
    worker_id: str | None = None
    error: ErrorInfo | None = None
    at: int  # microseconds since the epoch, UTC


class JournalEntry(Record, kw_only=True, gc=False):
    """The result of one effect of a custom algorithm; a run that starts again reads it instead of having the effect twice. Topic: training, key: run_id."""

    SCHEMA: ClassVar[str] = "JournalEntry"
    run_id: str
    place: str  # number of the effect in its branch, after the names of the branches: 3, or round-1/left/0
    kind: str  # enqueue, trajectories, publish, resources, step or returned
    name: str = ""  # of the step, or of what is published
    request: str = ""  # SHA-256 of what was asked for, in hex digits
    result: str = "null"  # a JSON value as text
    at: int  # microseconds since the epoch, UTC


class LLM(Part, kw_only=True, gc=False, tag="headrace.LLM", tag_field="-type"):
    """A model at an OpenAI-compatible endpoint."""

    endpoint: str
    model: str
    api_key_env: str | None = None  # name of the environment variable that holds the key
    sampling_parameters: str = "{}"  # a JSON value as text


class ProxyLLM(Part, kw_only=True, gc=False, tag="headrace.ProxyLLM", tag_field="-type"):
    """A model behind the gateway; its URL carries rollout and attempt."""

    endpoint: str  # of the gateway, without /rollout
    model: str
    api_key_env: str | None = None
    sampling_parameters: str = "{}"  # a JSON value as text


class PromptTemplate(Part, kw_only=True, gc=False, tag="headrace.PromptTemplate", tag_field="-type"):
    """A prompt that is tuned."""

    template: str
    engine: str = "f-string"  # f-string, jinja or poml


class Weights(Part, kw_only=True, gc=False, tag="headrace.Weights", tag_field="-type"):
    """A published set of weights."""

    policy: str
    version: int  # counts that policy's publications; never decreases
    weights_id: str  # sha256 of the manifest
    transport: str = "file"
    uri: str  # a Hugging Face directory, never overwritten
    format: str = "safetensors"  # safetensors or lora
    base_model: str | None = None  # name of the base model, or of an adapter the directory of its base weights
    sha256: dict[str, str] = {}  # by file name
    bytes: int = 0
    base_sha256: dict[str, str] = {}  # of the base weights of an adapter, by file name


class ResourcesUpdate(Record, kw_only=True, gc=False):
    """What runners, gateways and engines use from now on. Topic: resources, key: resources_id, compacted."""

    SCHEMA: ClassVar[str] = "ResourcesUpdate"
    resources_id: str
    name: str
    version: int  # increasing a name
    resources: dict[str, LLM | ProxyLLM | PromptTemplate | Weights]
    run_id: str | None = None
    step: int | None = None
    created_at: int  # microseconds since the epoch, UTC


class Reward(Record, kw_only=True, gc=False):
    """A judgement of a rollout, or of a call or step of it. Topic: rewards, key: rollout_id."""

    SCHEMA: ClassVar[str] = "Reward"
    rollout_id: str
    attempt_id: str | None = None
    reward_id: str  # idempotency key
    name: str = ""
    primary: bool
    value: float  # finite
    span_id: str | None = None
    source: str  # agent, grader or feedback
    at: int  # microseconds since the epoch, UTC
    metadata: dict[str, str] = {}


class TaskConfig(Part, kw_only=True, gc=False):
    """When an attempt is given up, and when a retry follows."""

    timeout_seconds: float | None = None
    unresponsive_seconds: float | None = None
    max_attempts: int = 1
    retry_condition: list[str] = []  # attempt statuses that are retried


class AttemptState(Part, kw_only=True, gc=False):
    """One delivery of one attempt."""

    attempt_id: str | None = None
    attempt: int
    delivery: int = 1
    status: str  # preparing, running, succeeded, failed, timeout, unresponsive, lost or cancelled
    worker_id: str | None = None
    started_at: int | None = None  # microseconds since the epoch, UTC
    last_heartbeat_at: int | None = None  # microseconds since the epoch, UTC
    last_activity_at: int | None = None  # microseconds since the epoch, UTC
    ended_at: int | None = None  # microseconds since the epoch, UTC
    error: ErrorInfo | None = None


class AppliedOffsets(Part, kw_only=True, gc=False):
    """The last records folded into this state; -1 where there is none."""

    tasks: int = -1
    attempts: int = -1


class RolloutState(Record, kw_only=True, gc=False):
    """Where a rollout stands. Topic: rollouts, key: rollout_id, compacted."""

    SCHEMA: ClassVar[str] = "RolloutState"
    rollout_id: str
    status: str  # queuing, preparing, running, succeeded, failed, requeuing or cancelled
    mode: str | None = None
    resources_id: str | None = None
    config: TaskConfig = msgspec.field(default_factory=lambda: TaskConfig(max_attempts=1))
    metadata: dict[str, str] = {}
    attempts: list[AttemptState] = []
    task_offset: int | None = None  # of the Task that runs now, in this rollout's partition of tasks
    group_id: str | None = None
    group_size: int = 1
    sample_index: int = 0
    run_id: str | None = None
    origin: str = "task"  # task or external
    cancel_requested_at: int | None = None  # microseconds since the epoch, UTC
    applied: AppliedOffsets = msgspec.field(default_factory=lambda: AppliedOffsets(tasks=-1, attempts=-1))
    enqueued_at: int  # microseconds since the epoch, UTC
    ended_at: int | None = None  # microseconds since the epoch, UTC


class ParentRun(Part, kw_only=True, gc=False):
    """The run and step this one goes on from."""

    run_id: str
    step: int


class RunManifest(Record, kw_only=True, gc=False):
    """All that a training run depends on. Topic: training, key: run_id."""

    SCHEMA: ClassVar[str] = "RunManifest"
    run_id: str
    algorithm: str
    policy: str
    settings: str = "{}"  # a JSON value as text
    seed: int = 0
    base_weights: Weights | None = None
    parent: ParentRun | None = None
    versions: dict[str, str] = {}  # of code and libraries
    device: str = "cpu"
    threads: int = 1
    dtype: str = "float32"
    offline: bool = False
    created_at: int  # microseconds since the epoch, UTC


class SpanStatus(Part, kw_only=True, gc=False):
    """As OpenTelemetry has it."""

    code: str = "UNSET"  # UNSET, OK or ERROR
    message: str = ""


class VersionRange(Part, kw_only=True, gc=False):
    """The oldest and the newest policy version that generated any token."""

    min: int
    max: int


class Choice(Part, kw_only=True, gc=False):
    """One answer of the call."""

    index: int
    response_token_ids: bytes = b""
    logprobs: bytes | None = None
    finish_reason: str | None = None
    text: str | None = None
    tool_calls: str = "[]"  # a JSON value as text


class Sampling(Part, kw_only=True, gc=False):
    """The sampling parameters in effect, after defaults and overrides."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1  # -1: off
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    constraints: str | None = (
        None  # a JSON value as text: guided decoding, logit bias and whatever else changes the support
    )


class Usage(Part, kw_only=True, gc=False):
    """Token counts as the engine reports them."""

    input_tokens: int = 0
    output_tokens: int = 0


class ModelCall(Part, kw_only=True, gc=False):
    """One call of a model, with what was sampled."""

    model: str
    policy: str | None = None
    policy_version: VersionRange | None = None
    weights_id: str | None = None
    response_id: str | None = None
    prompt_token_ids: bytes = b""
    choices: list[Choice] = []
    sampling: Sampling | None = None
    logprobs_mode: str | None = None  # raw or processed
    request: str | None = None  # a JSON value as text
    response: str | None = None  # a JSON value as text
    retry_count: int = 0
    usage: Usage | None = None
    http_status: int | None = None
    error: ErrorInfo | None = None


class Span(Record, kw_only=True, gc=False):
    """A whole OpenTelemetry span, with the model call it traces. Topic: spans, key: rollout_id."""

    SCHEMA: ClassVar[str] = "Span"
    rollout_id: str
    attempt_id: str | None = None
    session_id: str | None = None
    sequence: int | None = None
    source: str  # runner, gateway or otlp
    trace_id: str  # 32 hex digits
    span_id: str  # 16 hex digits
    parent_id: str | None = None
    name: str
    kind: str = "INTERNAL"  # UNSPECIFIED, INTERNAL, SERVER, CLIENT, PRODUCER or CONSUMER
    status: SpanStatus = msgspec.field(default_factory=lambda: SpanStatus(code="UNSET", message=""))
    start: int  # nanoseconds since the epoch, UTC
    end: int  # nanoseconds since the epoch, UTC
    attributes: str = "{}"  # a JSON value as text
    events: str = "[]"  # a JSON value as text
    links: str = "[]"  # a JSON value as text
    resource: str = "{}"  # a JSON value as text
    scope: str = "{}"  # a JSON value as text
    llm: ModelCall | None = None
    rest: str = "{}"  # a JSON value as text: what else OTLP says of a span and its resource (flags, trace state, dropped counts, schema URL)


class Task(Record, kw_only=True, gc=False):
    """One rollout that somebody asks for. Topic: tasks, key: rollout_id."""

    SCHEMA: ClassVar[str] = "Task"
    rollout_id: str
    group_id: str | None = None
    group_size: int = 1
    sample_index: int = 0
    input: str  # a JSON value as text
    mode: str | None = None  # train, val or test
    run_id: str | None = None
    resources_id: str | None = None
    config: TaskConfig = msgspec.field(default_factory=lambda: TaskConfig(max_attempts=1))
    metadata: dict[str, str] = {}
    attempt: int = 1
    enqueued_at: int  # microseconds since the epoch, UTC


class OffsetRun(Part, kw_only=True, gc=False):
    """Finished offsets, both ends included."""

    first: int
    last: int


class PartitionPosition(Part, kw_only=True, gc=False):
    """What is finished of a partition."""

    partition: int
    next: int  # first unfinished offset
    finished: list[OffsetRun] = []  # beyond next


class Dropped(Part, kw_only=True, gc=False):
    """Samples that were decided without being trained."""

    reason: str
    samples: list[LogPosition]


class Window(Part, kw_only=True, gc=False):
    """Where the run stands in triplets, and what this step decided."""

    position: list[PartitionPosition] = []
    samples: list[LogPosition] = []  # trained, in their order
    dropped: list[Dropped] = []
    group_ids: list[str] = []


class TrainerState(Part, kw_only=True, gc=False):
    """Optimizer, random state and schedule."""

    uri: str
    sha256: str


class TrainingStep(Record, kw_only=True, gc=False):
    """One step of a run with the window it was trained on; the authority at a restart. Topic: training, key: run_id."""

    SCHEMA: ClassVar[str] = "TrainingStep"
    run_id: str
    step: int
    policy: str
    policy_version: int
    window: Window
    decided: int = 0  # rollouts of this run decided so far, at revision 0
    state: TrainerState | None = None
    metrics: dict[str, float] = {}
    staleness: dict[str, int] = {}  # samples by staleness
    started_at: int  # microseconds since the epoch, UTC
    ended_at: int  # microseconds since the epoch, UTC


class PromptPrefix(Part, kw_only=True, gc=False):
    """The prompt begins with the first `length` tokens of the prompt and response of an earlier triplet."""

    triplet: int  # index of the earlier triplet
    length: int


class Triplet(Part, kw_only=True, gc=False):
    """One model call and choice."""

    prompt_token_ids: bytes  # all of the prompt, or what follows prompt_prefix
    prompt_prefix: PromptPrefix | None = None
    response_token_ids: bytes
    logprobs: bytes | None = None
    reward: float | None = None
    agent_name: str | None = None
    response_id: str | None = None
    span_id: str
    choice: int = 0
    model: str = ""
    policy: str | None = None
    policy_version: VersionRange | None = None
    sampling: Sampling | None = None
    logprobs_mode: str | None = None
    finish_reason: str | None = None
    messages: str | None = None  # a JSON value as text


class Diagnostics(Part, kw_only=True, gc=False):
    """What became of the model calls."""

    calls: int = 0
    kept: int = 0
    dropped: dict[str, int] = {}


class Trajectory(Record, kw_only=True, gc=False):
    """What a trainer learns from: the calls of one rollout with their rewards. Topic: triplets, key: group_id or rollout_id."""

    SCHEMA: ClassVar[str] = "Trajectory"
    rollout_id: str
    attempt_id: str | None = None
    group_id: str | None = None
    group_size: int = 1
    sample_index: int = 0
    mode: str | None = None
    run_id: str | None = None
    origin: str = "task"  # task or external
    session_id: str | None = None
    input: str = "null"  # a JSON value as text
    status: str  # the attempt's end
    triplets: list[Triplet] = []
    final_reward: float | None = None
    rewards: dict[str, float] = {}
    conversations: str | None = None  # a JSON value as text: the calls as OpenAI messages with tools
    resources_id: str | None = None
    policy: str | None = None
    policy_version: VersionRange | None = None
    diagnostics: Diagnostics = msgspec.field(default_factory=lambda: Diagnostics(calls=0, kept=0))
    revision: int = 0
    supersedes: LogPosition | None = None
    source: Source | None = None
    assembled_at: int  # microseconds since the epoch, UTC


class WorkerState(Record, kw_only=True, gc=False):
    """A process of the pipeline. Topic: workers, key: worker_id, compacted."""

    SCHEMA: ClassVar[str] = "WorkerState"
    worker_id: str
    kind: str
    host: str
    pid: int
    endpoint: str | None = None
    policy: str | None = None
    loading_version: int | None = None  # its load has begun
    loaded_version: int | None = None
    weights_id: str | None = None
    status: str  # idle, busy, unknown or gone
    counters: dict[str, int] = {}
    version: str = ""  # of Headrace
    started_at: int  # microseconds since the epoch, UTC
    last_heartbeat_at: int  # microseconds since the epoch, UTC


RECORDS: dict[str, type[Record]] = {
    "Assembled": Assembled,
    "AttemptEvent": AttemptEvent,
    "JournalEntry": JournalEntry,
    "ResourcesUpdate": ResourcesUpdate,
    "Reward": Reward,
    "RolloutState": RolloutState,
    "RunManifest": RunManifest,
    "Span": Span,
    "Task": Task,
    "TrainingStep": TrainingStep,
    "Trajectory": Trajectory,
    "WorkerState": WorkerState,
}
