"""The same examples in every run, and no clock: a property holds or it does not."""

from hypothesis import settings

from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]  # fixtures for every test

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")
