"""Flags that several trainers have."""

from typing import Annotated

import typer

LearningRate = Annotated[float, typer.Option(help="Learning rate of AdamW.")]
WeightDecay = Annotated[float, typer.Option(min=0, help="Weight decay of AdamW.")]
MaxGradNorm = Annotated[float, typer.Option(help="Gradients are scaled down to this norm.")]
Entropy = Annotated[float, typer.Option(min=0, help="Coefficient of the entropy bonus.")]
Keep = Annotated[int, typer.Option(min=2, help="Newest versions that stay on disk.")]
Seed = Annotated[int, typer.Option(help="Seed of the run.")]
Threads = Annotated[int, typer.Option(min=1, help="Threads of torch.")]
Goal = Annotated[float | None, typer.Option(help="Mean reward at which the run ends.")]
GoalSamples = Annotated[int, typer.Option(min=1, help="Over so many last samples.")]
Level = Annotated[str, typer.Option(help="Rows a call (transition) or a conversation (trajectory).")]
Dtype = Annotated[str, typer.Option(help="Of the forward pass: float32 or bfloat16.")]
MaxSteps = Annotated[
    int | None,
    typer.Option(
        min=1, help="Steps after which the run is finished: the process stays and decides what still arrives."
    ),
]
