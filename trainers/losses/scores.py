"""What a forward pass says of the trained tokens, and how far two policies are apart on them."""

from torch import Tensor

from headrace.streams.errors import InvalidValueError

KL = ("none", "k1", "k3")


def logprobs_and_entropy(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of each target and entropy of each distribution, both [tokens], of logits [tokens, vocabulary].

    The temperature is already in the logits.
    """
    all_logprobs = logits.log_softmax(-1)
    taken = all_logprobs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return taken, -(all_logprobs.exp() * all_logprobs).sum(-1)


def k3(behaviour: Tensor, current: Tensor) -> Tensor:
    """Each token's k3 estimate of KL(behaviour || current), never negative. http://joschu.net/blog/kl-approx.html"""
    log_ratio = current - behaviour
    return log_ratio.expm1() - log_ratio


def kl(kind: str, logprobs: Tensor, reference: Tensor) -> Tensor:
    """Each token's estimate of KL(policy || reference), of tokens that the policy has sampled.

    k1 is log(policy / reference), unbiased and of either sign; k3 is never negative. As a loss, k1 has a gradient whose
    mean is zero: it belongs in the reward.

    Args:
        logprobs: of the tokens under the policy.
        reference: of the same tokens under the reference.
    """
    return logprobs - reference if kind == "k1" else k3(logprobs, reference)


def check_kl(kind: str) -> str:
    """The estimator's name.

    Raises:
        SettingsError: there is no such estimator.
    """
    if kind not in KL:
        raise InvalidValueError(f"kl {kind!r}: choose one of {', '.join(KL)}")
    return kind
