"""Results that could not be recorded wait in files, until the store is back.

A spool file looks like a small exported study: the creation of the study that its results belong
to, and for each result the configuration and how the trial ended. So its digests show damage, and
it is written completely or not at all. A file is deleted after its results are in the log, and
`put_back` records nothing twice: whatever is killed in between, no result is lost or doubled.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256

from tradewind.engine.restore import Result, is_same, put_back, said
from tradewind.engine.session import Session
from tradewind.errors import ConfigError, FormatError, OutcomeError, StorageError
from tradewind.log.codec import encode
from tradewind.log.events import Created, Event, Failed, Finished, Proposed
from tradewind.log.files import parse_lines, write_lines
from tradewind.log.stalls import FINAL
from tradewind.output import logger as _logger
from tradewind.paths import open_file
from tradewind.types import Origin

_LARGEST = 2**26  # bytes of a file


# ---- keeping ----


def keep(session: Session, results: Sequence[Result]) -> str:
    """Write results to a new file and return its path. `StorageError` if that is impossible."""
    if session.spooled:  # somebody may try again and again to report the same
        for path, kept in _waiting(session):
            if all(any(_is_again(result, other) for other in kept) for result in results):
                return path
    reason = "a study in memory has no folder for them"
    for folder in session.log.spool:
        path = os.path.join(folder, f"{_prefix(session)}{secrets.token_hex(8)}.jsonl")
        try:
            os.makedirs(folder, exist_ok=True)
            write_lines(path, [_creation(session), *_events(results)])
            _sync(folder)
        except (OSError, StorageError) as error:
            reason = str(error)
        else:
            session.spooled.append(path)
            return path
    raise StorageError(reason)


def not_recorded(session: Session, results: Sequence[Result], why: StorageError) -> StorageError:
    """Keep results that could not be recorded because of `why`, and return the error that says
    where they are. If they cannot be kept, it contains them."""
    try:
        path = keep(session, results)
    except StorageError as error:
        gave = "; ".join(f"trial {r.end.number} gave {said(r.end)}" for r in results)
        text = f"results could not be recorded, nor kept in a file ({error}): {gave}"
    else:
        numbers = ", ".join(f"trial {result.end.number}" for result in results)
        text = (
            f"results that could not be recorded ({numbers}) wait in {path}: the next optimize, or "
            "study.restore(), records them"
        )
    kind = type(why) if isinstance(why, FINAL) else StorageError
    return kind(f"{why}; {text}")


def rescue(session: Session, results: Sequence[Result], error: BaseException) -> None:
    """Keep results that were not recorded because of `error`. If it is the store's, raise one that
    says where they are."""
    if isinstance(error, StorageError):
        raise not_recorded(session, results, error) from error
    with suppress(StorageError):
        _logger.warning("results that were not recorded wait in %s", keep(session, results))


def _is_again(a: Result, b: Result) -> bool:
    return a.end.number == b.end.number and is_same(a, b)


def _events(results: Sequence[Result]) -> Iterator[Event]:
    for result in results:
        number, size = result.end.number, result.train_size
        yield Proposed(number, result.params, Origin.ADDED, 0, train_size=size)
        yield result.end


def _sync(folder: str) -> None:
    """Make the disk remember that there is a new file."""
    with suppress(OSError):  # not every system can
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


# ---- recording ----


def record_spooled(session: Session) -> list[int]:
    """Record all results that wait for this study, and return the numbers of the trials that have
    changed."""
    changed: list[int] = []
    for path, results in _waiting(session):
        try:
            changed += put_back(session, results)
        except (ConfigError, OutcomeError) as error:
            _refuse(path, error)
            continue
        _logger.warning("recorded the results of %s", path)
        with suppress(OSError):  # another driver was faster, or may delete it later
            os.unlink(path)
    session.spooled.clear()
    return changed


def catch_up(session: Session) -> None:
    """Record what this session could not record before, now that the store answers again."""
    with suppress(StorageError):  # it is away again
        record_spooled(session)


def warn_of_spooled(session: Session) -> None:
    """Log how many results wait for this study, and where."""
    files = _waiting(session)
    if files:
        _logger.warning(
            "%d results of this study could not be recorded and wait in %s; optimize and "
            "study.restore() record them",
            sum(len(results) for _, results in files),
            " and ".join(sorted({os.path.dirname(path) for path, _ in files})),
        )


def _waiting(session: Session) -> list[tuple[str, list[Result]]]:
    """The files of this study, with the results in them. Those that are not as they must be are
    left alone."""
    found = []
    for path in _paths(session):
        try:
            found.append((path, _read(path, _creation(session))))
        except FileNotFoundError:  # another driver has recorded it
            pass
        except (OSError, FormatError) as error:
            _refuse(path, error)
    return found


def _paths(session: Session) -> list[str]:
    prefix, paths = _prefix(session), list(session.spooled)
    for folder in session.log.spool:
        with suppress(OSError):  # there is no folder yet
            names = [name for name in sorted(os.listdir(folder)) if name.startswith(prefix)]
            paths += [os.path.join(folder, name) for name in names if name.endswith(".jsonl")]
    return list(dict.fromkeys(paths))


def _read(path: str, creation: Created) -> list[Result]:
    with open_file(path, follow=False) as file:
        if os.fstat(file.fileno()).st_size > _LARGEST:
            raise FormatError(f"it must not have more than {_LARGEST} bytes")
        first, *events = parse_lines(file)
    if encode(first) != encode(creation):
        raise FormatError("it belongs to another study")
    results = [
        Result(proposed.params, proposed.train_size, end)
        for proposed, end in zip(events[::2], events[1::2], strict=False)
        if isinstance(proposed, Proposed)
        and isinstance(end, Finished | Failed)
        and proposed.number == end.number
    ]
    if 2 * len(results) != len(events):
        raise FormatError("it must hold configurations and results in turn")
    return results


def _refuse(path: str, error: Exception) -> None:
    _logger.warning("the results in %s cannot be recorded, and stay there: %s", path, error)


# ---- which study ----


def _creation(session: Session) -> Created:
    first = session.first
    assert first is not None
    return first


def _prefix(session: Session) -> str:
    """How the names of the files of this study begin, whatever the study is called by now. An
    imported copy has the same creation, but another id in its store."""
    named = f"{session.log.id} {_creation(session).at}"
    return f"{sha256(named.encode()).hexdigest()[:16]}-"
