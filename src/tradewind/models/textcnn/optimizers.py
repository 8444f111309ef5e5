"""The two optimizers of the thesis, for weights whose moments are kept by someone else."""

from __future__ import annotations

from torch import Tensor
from torch.optim import adam as torch_adam

RATES = {"adadelta": 1.0, "adam": 1e-3}

# Zeiler's method as Kim's code runs it: rate 1, decay 0.95. Kim's epsilon of 1e-6 makes first steps
# so large that a small hidden layer may die in them; this is Keras's.
DECAY, EPSILON = 0.95, 1e-7


def adadelta(g: Tensor, square: Tensor, change: Tensor, fade: Tensor | float) -> Tensor:
    """The change that gradient `g` asks for, by Zeiler's method: averages of the squares of
    gradients and of changes fade, and take up the new ones. Both are updated in place. `fade` is
    the decay to the power of the steps since their last update."""
    square.mul_(fade).addcmul_(g, g, value=1 - DECAY)
    change.mul_(fade)
    by = (change / DECAY).add_(EPSILON).div_(square + EPSILON).sqrt_().mul_(g)
    change.addcmul_(by, by, value=1 - DECAY)
    return by


def adam(w: Tensor, g: Tensor, first: Tensor, second: Tensor, steps: Tensor, rate: float) -> None:
    """Update weights in place, in the step whose number is `steps`."""
    torch_adam.adam(
        *([w], [g], [first], [second], [], [steps - 1]),
        fused=True,
        amsgrad=False,
        lr=rate,
        beta1=0.9,
        beta2=0.999,
        eps=1e-8,
        weight_decay=0.0,
        maximize=False,
    )
