"""Contract suites: check that a surrogate, acquisition, goal, runner or strategy of your own keeps
its promises.

Each `check_…` raises an AssertionError that says which rule is broken. `SURROGATE`, `ACQUISITION`,
`GOAL`, `RUNNER` and `STRATEGY` are the single checks, for `pytest.mark.parametrize`.

>>> tw.testing.check_goal(lambda: tw.Tradeoff(alpha=0.3, reference=60.0))
"""

from tradewind.testing.acquisitions import ACQUISITION, check_acquisition
from tradewind.testing.check import Check
from tradewind.testing.goals import GOAL, check_goal
from tradewind.testing.runners import RUNNER, check_runner
from tradewind.testing.strategies import STRATEGY, check_strategy
from tradewind.testing.surrogates import SURROGATE, check_surrogate

__all__ = [
    "ACQUISITION",
    "GOAL",
    "RUNNER",
    "STRATEGY",
    "SURROGATE",
    "Check",
    "check_acquisition",
    "check_goal",
    "check_runner",
    "check_strategy",
    "check_surrogate",
]
