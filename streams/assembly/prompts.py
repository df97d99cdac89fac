"""Prompts written as what they add to an earlier triplet, and read back whole.

In a conversation of n turns each prompt repeats all before it; as suffixes the trajectory grows with n, not with n².
"""

from bisect import bisect, insort
from collections import deque
from collections.abc import Sequence

from headrace.schemas.records import PromptPrefix, Triplet

ID_BYTES = 4
LEAST_BYTES = 16 * ID_BYTES  # saved at least; a reference of its own costs some bytes
LOOK_BACK = 8  # earlier triplets that are searched for a partial match


def whole_prompts(triplets: Sequence[Triplet]) -> list[bytes]:
    """The whole prompt of every triplet, as packed int32.

    Raises:
        ValueError: a triplet refers to one that does not come before it, or to more than that one holds.
    """
    prompts: list[bytes] = []
    for index, triplet in enumerate(triplets):
        prefix = triplet.prompt_prefix
        if prefix is None:
            prompts.append(triplet.prompt_token_ids)
            continue
        if not 0 <= prefix.triplet < index:
            raise ValueError(f"triplet {index} refers to triplet {prefix.triplet}, which does not come before it")
        earlier = prompts[prefix.triplet] + triplets[prefix.triplet].response_token_ids
        length = prefix.length * ID_BYTES
        if not 0 <= length <= len(earlier):
            raise ValueError(f"triplet {index} refers to {prefix.length} tokens of {len(earlier) // ID_BYTES}")
        prompts.append(earlier[:length] + triplet.prompt_token_ids)
    return prompts


def pack_prompts(triplets: Sequence[Triplet]) -> None:
    """Replace whole prompts by references to earlier triplets, in place, where that saves."""
    if len(triplets) < 2:
        return
    contexts = [triplet.prompt_token_ids + triplet.response_token_ids for triplet in triplets]
    sizes = [len(context) for context in contexts]
    # By their first tokens, since triplets that share fewer are of no use to each other: sizes and places in order.
    alike: dict[bytes, list[tuple[int, int]]] = {}
    latest: dict[bytes, deque[int]] = {}
    for index, triplet in enumerate(triplets):
        prompt, context = triplet.prompt_token_ids, contexts[index]
        size = len(prompt)
        best, source = 0, -1
        if size >= LEAST_BYTES and (earlier := alike.get(prompt[:LEAST_BYTES])):
            for place in range(bisect(earlier, (size, index)) - 1, -1, -1):
                i = earlier[place][1]
                if prompt.startswith(contexts[i]):
                    best, source = sizes[i], i
                    break
            else:
                for i in latest[prompt[:LEAST_BYTES]]:
                    common = common_tokens(prompt, contexts[i]) * ID_BYTES
                    if common > best:
                        best, source = common, i
                    if best == size:
                        break
        start = context[:LEAST_BYTES]
        if start not in alike:
            alike[start], latest[start] = [], deque(maxlen=LOOK_BACK)
        insort(alike[start], (len(context), index))
        latest[start].appendleft(index)
        if best >= LEAST_BYTES:
            triplet.prompt_prefix = PromptPrefix(triplet=source, length=best // ID_BYTES)
            triplet.prompt_token_ids = prompt[best:]


def common_tokens(a: bytes, b: bytes) -> int:
    """How many tokens two packed sequences share at their beginning."""
    low, high = 0, min(len(a), len(b)) // ID_BYTES
    if a[: high * ID_BYTES] == b[: high * ID_BYTES]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        end = middle * ID_BYTES
        if a[low * ID_BYTES : end] == b[low * ID_BYTES : end]:
            low = middle
        else:
            high = middle - 1
    return low
