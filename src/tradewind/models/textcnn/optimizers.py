"""The two optimizers of the thesis. The caller keeps their moments."""

from __future__ import annotations

from torch import Tensor
from torch.optim import adam as torch_adam

RATES = {"adadelta": 1.0, "adam": 1e-3}

# Zeiler's method as in Kim's code: rate 1, decay 0.95. With Kim's epsilon of 1e-6, the first steps
# are so large that all neurons of a small hidden layer may die; 1e-7 is Keras's value.
DECAY, EPSILON = 0.95, 1e-7


def adadelta(g: Tensor, square: Tensor, change: Tensor, fade: Tensor | float) -> Tensor:
    """The step for the gradient `g`, by Zeiler's method. `square` and `change` are decaying
    averages of squared gradients and of squared steps; both are updated in place. `fade` is the
    decay to the power of the number of steps since their last update."""
    square.mul_(fade).addcmul_(g, g, value=1 - DECAY)
    change.mul_(fade)
    by = (change / DECAY).add_(EPSILON).div_(square + EPSILON).sqrt_().mul_(g)
    change.addcmul_(by, by, value=1 - DECAY)
    return by


def adam(w: Tensor, g: Tensor, first: Tensor, second: Tensor, steps: Tensor, rate: float) -> None:
    """Update the weights in place. `steps` is the number of this step, counted from 1."""
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
