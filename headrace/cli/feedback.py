"""`headrace feedback`: a judgement of a rollout, however long after it."""

from typing import Annotated

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_json, settings_of

app = typer.Typer(add_completion=False)
BROKER_SECONDS = 30.0
ARRIVAL_SECONDS = 5.0
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        help="The view that knows what --session, --trace and --response mean [HEADRACE_VIEW].",
    ),
]
WORDS = {"true": 1.0, "false": 0.0}


@app.command(context_settings={"ignore_unknown_options": True})
def feedback(
    id: Annotated[str, typer.Argument(metavar="ID", help="A rollout's id, or with an option below another's.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="A number, true or false.")],
    session: Annotated[bool, typer.Option("--session", help="ID is a session's: its last rollout is meant.")] = False,
    trace: Annotated[bool, typer.Option("--trace", help="ID is a trace's.")] = False,
    response: Annotated[bool, typer.Option("--response", help="ID is that of an answer, such as chatcmpl-...")] = False,
    all: Annotated[bool, typer.Option("--all", help="With --session: all of its rollouts.")] = False,
    name: Annotated[str, typer.Option(help="A dimension; the primary reward has no name.")] = "",
    span: Annotated[str | None, typer.Option(help="The call or step that is judged, by span id.")] = None,
    end: Annotated[bool, typer.Option("--end", help="Nothing more comes: ends an external rollout.")] = False,
    key: Annotated[str | None, typer.Option(help="Feedback with the same key counts once.")] = None,
    database: Database = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """Give feedback: a reward, which makes a new revision of a trajectory that is written already.

    Example: headrace feedback 4bf92f3577b34da6a3ce929d0e0e4736 0.5 --name helpfulness
    """
    import asyncio

    from headrace.streams.feedback.errors import FeedbackError
    from headrace.streams.feedback.giving import Feedbacks, Written
    from headrace.streams.feedback.request import ALL, LAST, Feedback, read_feedback
    from headrace.streams.kafka.acked_producer import AckedProducer
    from headrace.streams.kafka.admin import partition_ids

    kinds = [kind for kind, given in (("session", session), ("trace", trace), ("response", response)) if given]
    if len(kinds) > 1:
        raise typer.BadParameter("ID is of one kind", param_hint=" / ".join(f"--{kind}" for kind in kinds))
    kind = kinds[0] if kinds else "rollout"
    fields = {f"{kind}_id": id, "value": _number(value), "name": name, "span_id": span, "end": end, "key": key}
    try:
        given = read_feedback({**fields, "scope": ALL if all else LAST})
    except FeedbackError as error:
        raise typer.BadParameter(str(error)) from error
    settings = settings_of(bootstrap, prefix, registry_url)

    async def write(given: Feedback) -> list[Written]:
        await asyncio.to_thread(partition_ids, settings, settings.topic("rewards"))
        producer = AckedProducer(settings, "headrace-feedback", linger_ms=0)
        feedbacks = Feedbacks(
            producer, database or settings.view, broker_seconds=BROKER_SECONDS, arrival_seconds=ARRIVAL_SECONDS
        )
        try:
            (outcome,) = await feedbacks.give([given])
        finally:
            feedbacks.close()
            await producer.close(1.0)
        if isinstance(outcome, FeedbackError):
            raise outcome
        return outcome

    for written in asyncio.run(write(given)):
        if json:
            print_json(
                {
                    "rollout_id": written.rollout_id,
                    "reward_id": written.reward_id,
                    "partition": written.partition,
                    "offset": written.offset,
                }
            )
        else:
            print(f"{written.rollout_id}: written as {written.reward_id}")


def _number(text: str) -> float | str:
    """A text that is no number stays one, and is refused with the reason that every reward has."""
    try:
        return WORDS[text.lower()] if text.lower() in WORDS else float(text)
    except ValueError:
        return text
