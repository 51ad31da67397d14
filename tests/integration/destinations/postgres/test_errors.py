"""A destination that does not do what it should: what is told, and what is left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import errors as states
from psycopg.conninfo import conninfo_to_dict

from hakiri_dagster.destinations.postgres.destination import open_destination
from hakiri_dagster.destinations.postgres.driver_errors import is_transient, translate_errors, translated
from hakiri_dagster.engine.embedded_postgres import Server, hold
from hakiri_dagster.errors import DestinationError, DestinationUnavailable, RowCountMismatch
from hakiri_dagster.manifest.load_spec import LoadMode
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, make_table, order, window


def url_with(database_url: str, **changes: str) -> str:
    parts = {key: str(value) for key, value in conninfo_to_dict(database_url).items()} | changes
    password = quote(parts["password"], safe="")
    return f"postgresql://{parts['user']}:{password}@{parts['host']}:{parts['port']}/{parts['dbname']}"


def refused_by(url: str) -> DestinationError:
    destination = open_destination({"url": url}, label="warehouse")
    with pytest.raises(DestinationError) as raised:
        destination.describe(make_table("append"))
    return raised.value


def test_a_wrong_password_is_told_without_it(database_url: str) -> None:
    error = refused_by(url_with(database_url, password="hunter2"))
    assert not isinstance(error, DestinationUnavailable)
    assert "password authentication failed" in str(error)
    assert "check the user and password" in str(error)
    assert "hunter2" not in str(error) + repr(error) + repr(error.__cause__)


def test_an_unknown_database_is_told(database_url: str) -> None:
    error = refused_by(url_with(database_url, dbname="nowhere"))
    assert not isinstance(error, DestinationUnavailable)
    assert 'database "nowhere" does not exist' in str(error)
    assert "create the database" in str(error)


def test_a_destination_that_is_down_may_come_back(database_url: str) -> None:
    error = refused_by(url_with(database_url, port="1"))
    assert isinstance(error, DestinationUnavailable)
    assert "is the destination running" in str(error)


@pytest.mark.parametrize(
    "url", ["postgresql://u:hunter2@h:port:port/x", "nonsense hunter2", "postgresql://u:hun%ZZter2@h/x"]
)
def test_a_url_that_cannot_be_read_is_told_without_its_password(url: str) -> None:
    with pytest.raises(DestinationError) as raised:
        open_destination({"url": url}, label="warehouse").describe(make_table("append"))
    assert "hunter2" not in str(raised.value)
    assert "hun%ZZter2" not in str(raised.value)


def test_a_read_only_database_is_told(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.ensure()
    name = conninfo_to_dict(shop.url)["dbname"]
    shop.query(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    read_only = make_shop(target_name="another")
    with pytest.raises(DestinationError, match="read-only") as raised:
        read_only.ensure()
    assert raised.value.hint is not None
    assert "primary" in raised.value.hint


def test_a_target_that_is_dropped_during_the_load_is_told(make_shop: MakeShop) -> None:
    shop = make_shop()
    load = shop.load()
    candidate = shop.candidate(load, [order(1)])
    shop.query("DROP TABLE raw.orders")
    with pytest.raises(DestinationError, match="dropped") as raised:
        shop.destination.prepare(load, candidate)
    assert not isinstance(raised.value, DestinationUnavailable)


def test_a_missing_privilege_is_told(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.ensure()
    shop.query("DROP ROLE IF EXISTS hakiri_guest")
    shop.query("CREATE ROLE hakiri_guest LOGIN PASSWORD 'guest'")
    try:
        guest = Shop(
            url_with(shop.url, user="hakiri_guest", password="guest"), make_table("append", target_schema="new")
        )
        with pytest.raises(DestinationError, match="permission denied") as raised:
            guest.ensure()
        assert raised.value.hint is not None
        assert "privilege" in raised.value.hint
        guest.close()
    finally:
        shop.query("DROP ROLE hakiri_guest")


def test_where_no_privilege_helps_but_ownership_the_hint_says_so(make_shop: MakeShop) -> None:
    shop = make_shop("truncate")
    shop.publish([order(1)])
    shop.query("DROP ROLE IF EXISTS hakiri_stranger")
    shop.query("CREATE ROLE hakiri_stranger; GRANT USAGE ON SCHEMA raw TO hakiri_stranger")
    try:
        with psycopg.connect(shop.url) as connection:
            connection.execute("SET ROLE hakiri_stranger")
            owned = pytest.raises(DestinationError, match="must be owner of table orders")
            with owned as raised, translate_errors("warehouse"):
                connection.execute("ALTER TABLE raw.orders ADD more int")
        assert raised.value.hint is not None
        assert "member of the role that owns it" in raised.value.hint
    finally:
        shop.query("DROP OWNED BY hakiri_stranger; DROP ROLE hakiri_stranger")


def test_a_lock_that_is_held_too_long_may_pass(make_shop: MakeShop) -> None:
    shop = make_shop("truncate")
    shop.publish([order(1)])
    hurried = Shop(f"{shop.url}?options=-c%20lock_timeout%3D50ms", shop.table)
    with psycopg.connect(shop.url) as reader:
        reader.execute("SELECT * FROM raw.orders")
        with pytest.raises(DestinationUnavailable, match=r"in use for 0\.05 s"):
            hurried.publish([order(2)])
    hurried.publish([order(2)])
    hurried.close()
    assert shop.ids() == [2]


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (states.DeadlockDetected, True),
        (states.SerializationFailure, True),
        (states.LockNotAvailable, True),
        (states.TooManyConnections, True),
        (states.CannotConnectNow, True),
        (states.AdminShutdown, True),
        (states.CrashShutdown, True),
        (states.ConnectionFailure, True),
        (states.DiskFull, False),
        (states.UndefinedTable, False),
        (states.InsufficientPrivilege, False),
        (states.ReadOnlySqlTransaction, False),
        (states.NotNullViolation, False),
        (states.DatabaseDropped, False),
    ],
)
def test_errors_that_may_pass_are_told_apart(error: type[psycopg.Error], transient: bool) -> None:
    assert is_transient(error("it failed")) is transient
    assert isinstance(translated(error("it failed"), "here"), DestinationUnavailable) is transient


def test_a_full_disk_has_a_hint() -> None:
    assert "disk is full" in str(translated(states.DiskFull("could not extend file"), "here"))


@pytest.fixture
def own_server(open_folder: Path) -> Iterator[Server]:
    """A server that a test may kill."""
    with hold(open_folder / "mortal", durable=True) as server:
        server.ensure_database("shop")
        yield server


def test_a_server_killed_in_the_middle_of_a_load_leaves_the_target_as_it_was(own_server: Server) -> None:
    shop = Shop(own_server.url("shop"), make_table("append"))
    shop.publish([order(1)])
    load = shop.load()
    candidate = shop.candidate(load, [order(1), order(2), order(3)], blocks=3)

    def kill(index: int) -> None:
        if index == 2:
            os.kill(_postmaster(own_server), signal.SIGKILL)
            own_server.ensure_running()

    candidate.before_block = kill
    with pytest.raises(DestinationUnavailable):
        shop.destination.prepare(load, candidate)
    shop = Shop(own_server.url("shop"), make_table("append"))
    assert shop.ids() == [1]
    shop.publish([order(1), order(2), order(3)])
    assert shop.ids() == [1, 2, 3]
    shop.close()


@pytest.mark.parametrize("committed", [True, False])
def test_a_server_killed_at_the_commit_published_what_its_ledger_says(own_server: Server, committed: bool) -> None:
    shop = Shop(own_server.url("shop"), make_table("truncate", target_name="orders"))
    shop.publish([order(1)])
    prepared = shop.prepare([order(1), order(2)])
    original = psycopg.Connection.commit

    def commit(connection: psycopg.Connection[object]) -> None:
        if committed:
            original(connection)
        os.kill(_postmaster(own_server), signal.SIGKILL)
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        own_server.ensure_running()
        patch.undo()
        original(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Connection, "commit", commit)
        if committed:
            entry = prepared.publish(None, 0)
            assert shop.destination.ledger(shop.table) == (entry,)
        else:
            with pytest.raises(DestinationUnavailable, match="nothing was published"):
                prepared.publish(None, 0)
    assert shop.ids() == ([1, 2] if committed else [1])
    shop.close()


def _postmaster(server: Server) -> int:
    (pid_file,) = server.home.cluster.rglob("postmaster.pid")
    return int(pid_file.read_text().splitlines()[0])


# Leaves out Bob.
_FILTER = """
CREATE FUNCTION raw.no_bob() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN IF NEW.customer = ''bob'' THEN RETURN NULL; END IF; RETURN NEW; END';
CREATE TRIGGER "no bob" BEFORE INSERT ON raw.{} FOR EACH ROW EXECUTE FUNCTION raw.no_bob();
"""
_TWO = [order(1, "ann"), order(2, "bob")]


@pytest.mark.parametrize("mode", ["append", "truncate", "incremental_watermark"])
def test_a_trigger_that_leaves_rows_out_is_named(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.publish([order(1)], window(0, 10))
    shop.query(_FILTER.format("orders"))
    shop.query(
        "CREATE TRIGGER later AFTER INSERT ON raw.orders FOR EACH ROW EXECUTE FUNCTION raw.no_bob();"
        "CREATE TRIGGER disabled BEFORE INSERT ON raw.orders FOR EACH ROW EXECUTE FUNCTION raw.no_bob();"
        "ALTER TABLE raw.orders DISABLE TRIGGER disabled"
    )
    before = shop.fingerprint()
    with pytest.raises(RowCountMismatch) as caught:
        shop.publish(_TWO, window(0, 10))
    assert caught.value.kind == "permanent"
    assert str(caught.value) == (
        "Spark reported 2 rows, PostgreSQL took 1; nothing was published. A trigger that fires before INSERT leaves "
        'out each row for which it returns NULL; there is "no bob" on raw.orders\n'
        '  hint: drop the trigger that does so, or disable it (ALTER TABLE raw.orders DISABLE TRIGGER "no bob"), or '
        "give the table another `target`"
    )
    assert shop.fingerprint() == before
    shop.query('ALTER TABLE raw.orders DISABLE TRIGGER "no bob"')
    shop.publish(_TWO, window(0, 10))
    assert shop.ids() == [1, 2]


@pytest.mark.parametrize("place", ["orders", "rest"])
def test_a_trigger_of_a_partition_that_leaves_rows_out_is_named_once(make_shop: MakeShop, place: str) -> None:
    shop = make_shop()
    shop.query(
        "CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint, customer text, amount numeric, updated_at bigint) "
        "PARTITION BY RANGE (id); CREATE TABLE raw.rest PARTITION OF raw.orders DEFAULT"
    )
    shop.query(_FILTER.format(place))
    with pytest.raises(RowCountMismatch, match=f'NULL; there is "no bob" on raw.{place}\n'):
        shop.publish(_TWO)


def test_a_count_that_no_trigger_explains_is_left_to_the_next_try(make_shop: MakeShop) -> None:
    shop = make_shop()
    load = shop.load()
    shop.query(_FILTER.format("orders"))
    with pytest.raises(RowCountMismatch) as caught:
        shop.destination.prepare(load, replace(shop.candidate(load, _TWO[:1]), rows=0))
    assert caught.value.kind == "transient"
    assert "no bob" not in str(caught.value)
