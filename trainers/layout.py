"""How sequences lie in the rows of a forward pass: one after the other's tokens, or sharing what they begin with.

Sixteen answers to one prompt share all of the prompt. As a tree, each distinct prefix is computed once: a node attends
to its ancestors only, and stands at its depth. It is what prefix caching is to sampling, for the gradient too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
MOST_NODES = 2048  # a tree's mask is dense


@dataclass(frozen=True, slots=True)
class Layout:
    """One row of a forward pass. The last token of a sequence predicts nothing, and is not in it.

    Attributes:
        token_ids: of its nodes, [nodes].
        positions: depth of each node, [nodes].
        mask: which nodes each attends to, [nodes, nodes]; None for a chain.
        predictors: of each of its sequences, the node that predicts each target.
    """

    token_ids: Ints
    positions: Ints
    mask: Bools | None
    predictors: list[Ints]


def chain(token_ids: npt.NDArray[np.int32], targets: Ints) -> Layout:
    """A sequence on its own; `targets` are the positions of its trained tokens."""
    size = token_ids.size - 1
    return Layout(token_ids[:-1].astype(np.int64), np.arange(size), None, [targets - 1])


def worth_a_tree(lengths: Sequence[int], prompt: int) -> bool:
    """Whether sharing a prompt costs no more attention than it saves, and the mask stays small."""
    nodes = prompt + sum(length - prompt for length in lengths)
    return len(lengths) > 1 and nodes <= MOST_NODES and nodes * nodes <= sum(length * length for length in lengths)


def tree(sequences: Sequence[npt.NDArray[np.int32]], targets: Sequence[Ints], prompt: int) -> Layout:
    """Sequences whose first `prompt` tokens are equal."""
    token_ids: list[int] = sequences[0][:prompt].tolist()
    parents: list[int] = []
    children: dict[tuple[int, int], int] = {}
    depths = list(range(prompt))
    predictors: list[Ints] = []
    for sequence, positions in zip(sequences, targets, strict=True):
        node = prompt - 1
        path: list[int] = [node]
        for token in sequence[prompt:-1].tolist():
            key = (node, token)
            found = children.get(key)
            if found is None:
                found = children[key] = len(token_ids)
                token_ids.append(token)
                parents.append(node)
                depths.append(depths[node] + 1)
            node = found
            path.append(node)
        # The path begins at the last prompt token, which predicts position `prompt`.
        predictors.append(np.array(path, dtype=np.int64)[positions - prompt])
    size = len(token_ids)
    mask = np.zeros((size, size), dtype=np.bool_)
    mask[:prompt, :prompt] = np.tri(prompt, dtype=np.bool_)
    for offset, parent in enumerate(parents):
        node = prompt + offset
        mask[node] = mask[parent]
        mask[node, node] = True
    return Layout(np.array(token_ids, dtype=np.int64), np.array(depths, dtype=np.int64), mask, predictors)
