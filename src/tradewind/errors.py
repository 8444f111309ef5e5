"""Every error that Tradewind raises on purpose.

    TradewindError
    ├── SpaceError (ValueError)      a search space that contradicts itself
    ├── ConfigError (ValueError)     a configuration that does not fit its space
    ├── OutcomeError (ValueError)    a value or cost that no trial can have
    ├── TrialError (RuntimeError)    a trial in the wrong state: told twice, never asked, unknown
    └── NothingFinished (LookupError)    a question that only a finished trial can answer

Arguments of the wrong type stay `TypeError`, and single bad arguments stay `ValueError`.
"""


class TradewindError(Exception):
    """Base class of all errors that Tradewind raises on purpose."""


class SpaceError(TradewindError, ValueError):
    """A search space that contradicts itself."""


class ConfigError(TradewindError, ValueError):
    """A configuration that does not fit its space."""


class OutcomeError(TradewindError, ValueError):
    """A value or cost that no trial can have."""


class TrialError(TradewindError, RuntimeError):
    """A trial that is not in the state that the call needs."""


class NothingFinished(TradewindError, LookupError):
    """A question that only a finished trial can answer, asked before there is one."""
