"""The same examples in every run, and no clock: a property holds or it does not."""

from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")
