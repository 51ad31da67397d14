from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import Connection, insert, select

from hakiri_dagster.audit import schema
from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.audit.renames import HISTORY, OF_PIPELINE, STATE, Rename
from hakiri_dagster.errors import UsageError
from tests.integration.audit.conftest import OpenAudit

NOW = datetime(2024, 1, 1, tzinfo=UTC)
PIPELINE, TABLE = Rename("tea", "shop"), Rename("tea", "shop", "orders", "sales")


def fill(connection: Connection, pipeline_id: str, table_name: str, key: str) -> None:
    """A row in every table that is renamed."""
    for table in (*STATE, *HISTORY, *OF_PIPELINE):
        row: dict[str, object] = {}
        for column in table.c:
            if column.name in ("pipeline_id", "table_name"):
                row[column.name] = {"pipeline_id": pipeline_id, "table_name": table_name}[column.name]
            elif column.autoincrement is True or column.name in ("acknowledged_at", "proof"):
                continue
            elif isinstance(column.type, schema.UtcTime):
                row[column.name] = NOW
            elif column.type.python_type is int:
                row[column.name] = 1
            else:
                row[column.name] = key
        connection.execute(insert(table).values(row))


def names(audit: AuditDb) -> dict[str, list[tuple[str, ...]]]:
    """Pipeline and table of each row, by the name of its table; of what has no table, the pipeline."""

    def work(connection: Connection) -> dict[str, list[tuple[str, ...]]]:
        return {
            table.name: sorted(
                tuple(row)
                for row in connection.execute(
                    select(*(table.c[name] for name in ("pipeline_id", "table_name") if name in table.c))
                )
            )
            for table in (*STATE, *HISTORY, *OF_PIPELINE)
        }

    return audit._transactions.read(work)


def test_every_table_that_knows_a_pipeline_is_renamed() -> None:
    known = {table for table in schema.METADATA.sorted_tables if "pipeline_id" in table.c}
    assert known - {schema.PASS_PLACE} == {*STATE, *HISTORY, *OF_PIPELINE}  # places are those of runs at work


def test_a_pipeline_takes_all_its_records_along_and_replaces_what_a_refused_survey_has_stored(audit: AuditDb) -> None:
    def both(connection: Connection) -> None:
        fill(connection, "tea", "orders", "old")
        fill(connection, "shop", "orders", "new")
        fill(connection, "shop", "customers", "old")

    audit._transactions.write(both)
    audit.renames.begin(PIPELINE)
    assert audit.renames.unfinished() == (PIPELINE,)
    assert audit.renames.move(PIPELINE) > 0
    of_state = [("shop", "customers"), ("shop", "orders")]
    found = names(audit)
    for table in STATE:
        keys = audit._transactions.read(
            lambda c, table=table: c.execute(select(table).where(table.c.table_name == "orders")).one()
        )
        assert (found[table.name], "old" in keys, "new" in keys) == (of_state, True, False), table.name
    for table in HISTORY:
        assert found[table.name] == sorted([*of_state, ("shop", "orders")]), table.name
    assert {table.name: set(found[table.name]) for table in OF_PIPELINE} == {t.name: {("shop",)} for t in OF_PIPELINE}
    assert audit.renames.move(PIPELINE) == 0  # as after a kill
    assert names(audit) == found
    audit.renames.finish(PIPELINE)
    assert (audit.renames.unfinished(), audit.renames.was_finished(PIPELINE)) == ((), True)


def test_a_table_is_renamed_alone(audit: AuditDb) -> None:
    audit._transactions.write(lambda c: [fill(c, "tea", name, name) for name in ("orders", "customers")])
    audit.renames.move(TABLE)
    for table in (*STATE, *HISTORY):
        assert names(audit)[table.name] == [("shop", "sales"), ("tea", "customers")], table.name
    assert {row for table in OF_PIPELINE for row in names(audit)[table.name]} == {("tea",)}


def test_what_is_recorded_under_both_names_is_recorded_once(audit: AuditDb) -> None:
    def same(connection: Connection) -> None:
        fill(connection, "tea", "orders", "same")
        fill(connection, "shop", "orders", "same")

    audit._transactions.write(same)
    audit.renames.move(PIPELINE)
    found = names(audit)
    assert found.pop("rewind") == [("shop", "orders")] * 2
    assert {tuple(rows) for rows in found.values()} == {(("shop", "orders"),), (("shop",),)}


def test_a_rename_that_is_under_way_keeps_others_of_its_names_out_and_may_be_taken_back(open_again: OpenAudit) -> None:
    audit = open_again()
    audit.renames.begin(PIPELINE)
    audit.renames.begin(PIPELINE)
    for other in (Rename("shop", "coffee"), TABLE, Rename("coffee", "tea")):
        with pytest.raises(UsageError, match="the rename of tea to shop is not finished"):
            open_again().renames.begin(other)
    audit.renames.begin(Rename("coffee", "cocoa"))
    back = Rename("shop", "tea")
    audit.renames.begin(back)
    assert set(audit.renames.unfinished()) == {Rename("coffee", "cocoa"), back}
