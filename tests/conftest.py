"""What holds for every test: a property gets the same examples in every run, and no clock; signals
have their usual handlers; nothing is written into the user's own folder."""

import gc
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]  # fixtures for every test

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test leaves results in the user's own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def usual_handlers() -> Iterator[None]:
    """Libraries that other tests have loaded may have installed their own handlers, and jobs in the
    background of a shell ignore Ctrl-C."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        if handler is not None:  # only a handler that Python installed can be restored
            signal.signal(number, handler)


@pytest.fixture(scope="module", autouse=True)
def no_connection_is_left() -> Iterator[None]:
    """A connection to Ray ends with the module that opened it. Calls through an old one may wait
    for ever."""
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: garbage collections may pass it over."""
    gc.collect()
    gc.freeze()
