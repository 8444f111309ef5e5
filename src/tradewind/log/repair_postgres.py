"""Repairing studies in PostgreSQL whose events were changed or removed.

This is for damaged rows. If the server itself reports damaged pages, restore a backup."""

from __future__ import annotations

from functools import partial

from tradewind.log.log import Store, random_id
from tradewind.log.postgres import PostgresStore
from tradewind.log.postgres_database import Connection
from tradewind.log.salvage import SavedStudy, save_study


def repair_database(store: Store) -> tuple[str, str | None, tuple[SavedStudy, ...]]:
    """Cut every damaged study at its damage, and keep a copy of it as it was. Returns where the
    store is, the names of the copies, and what was saved of each study."""
    assert isinstance(store, PostgresStore)
    query = "SELECT id, name FROM tradewind_studies ORDER BY place"
    studies = store.database.run(lambda db: db.execute(query).fetchall())
    done = [store.database.run(partial(_repair, study=id, name=name)) for id, name in studies]
    copies = ", ".join(repr(copy) for copy, _ in done if copy)
    return store.database.where, copies or None, tuple(saved for _, saved in done)


def _repair(db: Connection, study: int, name: str) -> tuple[str | None, SavedStudy]:
    """Repair one study, completely or not at all. The copy gets another id, so that open logs
    continue with the repaired study."""
    with db.transaction():
        db.execute("SELECT FROM tradewind_studies WHERE id = %s FOR UPDATE", (study,))
        query = "SELECT position, event FROM tradewind_events WHERE study = %s"
        rows = db.execute(query, (study,)).fetchall()
        saved, _ = save_study(name, {position: [event] for position, event in rows})
        if saved.damage is None:
            return None, saved
        copy, other = _free_name(db, f"{name} (damaged)"), random_id()
        db.execute("INSERT INTO tradewind_studies (id, name) VALUES (%s, %s)", (other, copy))
        db.execute(
            "INSERT INTO tradewind_events SELECT %s, position, event, token "
            "FROM tradewind_events WHERE study = %s",
            (other, study),
        )
        db.execute(
            "DELETE FROM tradewind_events WHERE study = %s AND position >= %s",
            (study, saved.events),
        )
        if not saved.events:
            db.execute("DELETE FROM tradewind_studies WHERE id = %s", (study,))
        return copy, saved


def _free_name(db: Connection, name: str) -> str:
    while db.execute("SELECT FROM tradewind_studies WHERE name = %s", (name,)).fetchone():
        name += "'"
    return name
