"""`headrace promote`: gives production engines a validated version."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_json, settings_of

if TYPE_CHECKING:
    from headrace.schemas.records import Weights

app = typer.Typer(add_completion=False)


@app.command()
def promote(
    run: Annotated[str, typer.Argument(help="The run that has published the version.")],
    version: Annotated[int, typer.Argument(min=0, help="The version of its policy.")],
    to: Annotated[str, typer.Option("--to", metavar="CHANNEL", help="The policy that production engines serve.")],
    min_reward: Annotated[
        float | None, typer.Option(help="Least mean validation reward (that of what the channel has).")
    ] = None,
    min_samples: Annotated[int, typer.Option(min=1, help="Fewest validation rollouts of the version.")] = 20,
    json: Json = False,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
) -> None:
    """Publish a version of a run in a channel, once its files and its validation are right.

    Engines that are started with --policy CHANNEL follow the channel, and never a step that was not promoted. The
    validation of a version are its rollouts of mode val that it alone has answered. A version that the channel had
    before goes back into it by the same command: a rollback.

    Example: headrace promote run-1 40 --to production --min-reward 0.8
    """
    from headrace.trainers.promotion.gate import Gate
    from headrace.trainers.promotion.promote import promote as give

    gate = Gate(min_samples=min_samples, min_reward=min_reward)
    done = give(settings_of(bootstrap, prefix, registry_url), run, version, to, gate, _verify)
    validation = done.validation
    if json:
        print_json(
            {
                "channel": to,
                "channel_version": done.weights.version,
                "run_id": run,
                "version": version,
                "weights_id": done.weights.weights_id,
                "changed": done.changed,
                "validation_reward": None if validation is None else validation.reward,
                "validation_samples": None if validation is None else validation.samples,
            }
        )
        return
    if not done.changed:
        print(f"{to} has version {version} of {run} already")
        return
    why = "it was there before" if validation is None else f"reward {validation.reward:.4f} of {validation.samples}"
    print(f"{to} version {done.weights.version} is version {version} of {run} ({why})")


def _verify(weights: "Weights") -> None:
    """Raises PromotionRefusedError where an engine would refuse the version."""
    from headrace.connectors.engine.adapter import LORA, fits, read_adapter, read_base
    from headrace.connectors.engine.checkpoint import CheckpointError, is_finite, read_checkpoint, signature
    from headrace.trainers.promotion.gate import PromotionRefusedError

    try:
        if weights.format == LORA:
            adapter = read_adapter(weights.uri, weights.sha256)
            tensors = read_base([weights.base_model], weights.base_sha256)
            fits(adapter, signature(tensors))
        else:
            tensors = read_checkpoint(weights.uri, weights.sha256)
    except CheckpointError as error:
        raise PromotionRefusedError(f"version {weights.version}: {error} ({error.reason})") from error
    if odd := [name for name, tensor in tensors.items() if not is_finite(tensor)]:
        raise PromotionRefusedError(f"version {weights.version}: {odd[0]} holds NaN or infinite values (not_finite)")
