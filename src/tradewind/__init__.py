"""Tradewind selects machine-learning models by how well they predict and how much they cost.

Every public name is loaded when it is first used, so `import tradewind` takes almost no time.
"""

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from tradewind import errors as errors
    from tradewind import integrations as integrations
    from tradewind import models as models
    from tradewind import recipes as recipes
    from tradewind import runners as runners
    from tradewind import stopping as stopping
    from tradewind import strategies as strategies
    from tradewind import subsets as subsets
    from tradewind import testing as testing
    from tradewind.errors import TradewindError as TradewindError
    from tradewind.goals import BestUnder as BestUnder
    from tradewind.goals import CheapestWithin as CheapestWithin
    from tradewind.goals import Frontier as Frontier
    from tradewind.goals import Knee as Knee
    from tradewind.goals import Quality as Quality
    from tradewind.goals import Tradeoff as Tradeoff
    from tradewind.log.repair import Repair as Repair
    from tradewind.log.repair import repair as repair
    from tradewind.runners.program import Program as Program
    from tradewind.runners.run import Run as Run
    from tradewind.sklearn import TradeoffSearchCV as TradeoffSearchCV
    from tradewind.space import Bool as Bool
    from tradewind.space import Categorical as Categorical
    from tradewind.space import Float as Float
    from tradewind.space import Int as Int
    from tradewind.space import Ordinal as Ordinal
    from tradewind.space import Space as Space
    from tradewind.space import TrainSize as TrainSize
    from tradewind.space import at_least as at_least
    from tradewind.study.compare import Comparison as Comparison
    from tradewind.study.confirm import Confirmation as Confirmation
    from tradewind.study.explain import Explanation as Explanation
    from tradewind.study.finish import Final as Final
    from tradewind.study.forecast import Forecast as Forecast
    from tradewind.study.insights import Importance as Importance
    from tradewind.study.insights import PartialDependence as PartialDependence
    from tradewind.study.leaderboard import Leaderboard as Leaderboard
    from tradewind.study.predictions import Predicted as Predicted
    from tradewind.study.recommend import Recommendation as Recommendation
    from tradewind.study.replay import Replay as Replay
    from tradewind.study.replay import replay as replay
    from tradewind.study.studies import StudySummary as StudySummary
    from tradewind.study.studies import create_study as create_study
    from tradewind.study.studies import delete_study as delete_study
    from tradewind.study.studies import import_study as import_study
    from tradewind.study.studies import list_studies as list_studies
    from tradewind.study.studies import load_study as load_study
    from tradewind.study.studies import rename_study as rename_study
    from tradewind.study.study import Study as Study
    from tradewind.types import FinishedTrial as FinishedTrial
    from tradewind.types import Trial as Trial

__version__ = "0.1.0"

_MODULES = (
    "errors",
    "integrations",
    "models",
    "recipes",
    "runners",
    "stopping",
    "strategies",
    "subsets",
    "testing",
)

_HOMES = {
    "BestUnder": "goals",
    "Bool": "space",
    "Categorical": "space",
    "CheapestWithin": "goals",
    "Comparison": "study.compare",
    "Confirmation": "study.confirm",
    "Explanation": "study.explain",
    "Final": "study.finish",
    "FinishedTrial": "types",
    "Float": "space",
    "Forecast": "study.forecast",
    "Frontier": "goals",
    "Importance": "study.insights",
    "Int": "space",
    "Knee": "goals",
    "Leaderboard": "study.leaderboard",
    "Ordinal": "space",
    "PartialDependence": "study.insights",
    "Predicted": "study.predictions",
    "Program": "runners.program",
    "Quality": "goals",
    "Recommendation": "study.recommend",
    "Repair": "log.repair",
    "Replay": "study.replay",
    "Run": "runners.run",
    "Space": "space",
    "Study": "study.study",
    "StudySummary": "study.studies",
    "Tradeoff": "goals",
    "TradeoffSearchCV": "sklearn",
    "TradewindError": "errors",
    "TrainSize": "space",
    "Trial": "types",
    "at_least": "space",
    "create_study": "study.studies",
    "delete_study": "study.studies",
    "import_study": "study.studies",
    "list_studies": "study.studies",
    "load_study": "study.studies",
    "rename_study": "study.studies",
    "repair": "log.repair",
    "replay": "study.replay",
}

__all__ = sorted([*_HOMES, *_MODULES])


if not _typing.TYPE_CHECKING:  # a type checker that saw this would accept any name

    def __getattr__(name: str) -> _typing.Any:
        if name in _MODULES:
            return _import_module(f"{__name__}.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value  # so that the next use does not come here
        return value


def __dir__() -> list[str]:
    return __all__
