"""Databases behind a user's own program: real ones, found by their usual variables, filled once."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from e2e import library
from e2e.commands import (
    PATIENCE_S,
    QUICK,
    left_behind,
    run_rounds,
    started_webdyno,
    wait_for,
    webdyno,
)
from e2e.own import CMD, make_repository
from variants import further
from webdyno.config import Catalogue, CommandLine, Draft
from webdyno.core.errors import Exit, UserError
from webdyno.core.metrics import responses
from webdyno.core.records import SlotRecord
from webdyno.core.setting import SettingValue
from webdyno.host.this_machine import Testbed
from webdyno.measure.folder import RunFolder
from webdyno.probes.status import read_status
from webdyno.servers.running import RunningStack
from webdyno.servers.service import StackDied
from webdyno.servers.starting import open_stack
from webdyno.systems.variants import resolve

SERVES = 'cd public && exec python3 -m http.server --bind 127.0.0.1 "$PORT"'


@contextmanager
def started(
    folder: Path, start: str, settings: Mapping[str, SettingValue] | None = None, **keys: object
) -> Iterator[RunningStack]:
    """Start a command with services behind it."""
    variant = {"stack": f"cmd:{start}", **keys}
    draft = Draft.of(CommandLine({"variants": {"a": variant}}, {}), [])
    draft, catalogue = resolve(draft, Catalogue.load(), folder, lambda _: None, lambda _: None)
    stack, site = catalogue.stack(draft.data["variants"]["a"]["stack"]), catalogue.site("own")
    kept = folder / "kept"
    with open_stack(stack, settings or {}, site, folder=kept, testbed=Testbed()) as running:
        yield running


def said(running: RunningStack) -> str:
    with urlopen(f"{running.url}/said.txt") as response:  # noqa: S310 (our own server)
        return str(response.read().decode())


ASKS = {
    "postgresql": 'psql "$DATABASE_URL" -At -c "SELECT 7"; psql -At -c "SELECT $PGPORT"',
    "mariadb": 'mariadb --no-defaults -u "$MYSQL_USER" -N "$MYSQL_DATABASE" -e "SELECT 7"'
    '; echo "${DATABASE_URL%%:*}"',
    "redis": 'redis-cli --no-auth-warning -u "$REDIS_URL" PING',
    "memcached": 'echo "$MEMCACHED_URL $MEMCACHE_SERVERS"',
}


@pytest.mark.parametrize("service", ASKS)
def test_a_service_is_found_by_its_usual_variables(tmp_path: Path, service: str) -> None:
    ask = f"mkdir -p public; ({ASKS[service]}) >public/said.txt 2>&1"
    with started(tmp_path, SERVES, services={"db": service}, prepare=ask) as running:
        port = running.services()["db"].address.port
        answers = {
            "postgresql": f"7\n{port}\n",
            "mariadb": "7\nmysql\n",
            "redis": "PONG\n",
            "memcached": f"memcached://127.0.0.1:{port} 127.0.0.1:{port}\n",
        }
        assert said(running) == answers[service]


@pytest.mark.long
def test_pgbouncer_stands_in_front_of_postgresql_where_asked(tmp_path: Path) -> None:
    by_socket = "SELECT inet_server_addr() IS NULL"  # as the server sees it
    ask = f'mkdir -p public; psql "$DATABASE_URL" -At -c "{by_socket}" >public/said.txt 2>&1'
    settings = {"pgbouncer": True, "pool_size": 1}
    with started(tmp_path, SERVES, settings, services={"db": "postgresql"}, prepare=ask) as running:
        assert said(running) == "t\n"
        assert ", PgBouncer 1." in running.versions()["db"]
        facts = running.services()["db"].facts()
        assert facts["connections"] == "100; PgBouncer, session pooling, 1 to the server"
        running.check_alive()


@pytest.mark.long
def test_postgresql_is_found_by_its_socket(tmp_path: Path) -> None:
    ask = 'mkdir -p public; psql "$DATABASE_URL" -At -c "SHOW listen_addresses" >public/said.txt'
    with started(
        tmp_path, SERVES, {"db_listen": "unix"}, services={"db": "postgresql"}, prepare=ask
    ) as running:
        assert said(running) == "\n"


@pytest.mark.long
def test_of_two_databases_the_first_has_the_usual_variables(tmp_path: Path) -> None:
    ask = 'mkdir -p public; echo "$PGHOST $REDIS_URL $DATABASE_URL" >public/said.txt'
    both = {"cache": "redis", "db": "mariadb", "other": "postgresql"}
    own = {"REDIS_URL": "mine"}
    with started(tmp_path, SERVES, services=both, prepare=ask, environment=own) as running:
        assert said(running).startswith("127.0.0.1 mine mysql://site:")


FILL = 'echo filled >>fills; psql -qc "CREATE TABLE words AS SELECT 1 AS word"'
COUNT = 'psql -Atqc "INSERT INTO words VALUES (2)" -c "SELECT count(*) FROM words"'


def test_setup_fills_once_and_each_start_gets_a_copy(tmp_path: Path) -> None:
    ask, behind = f"mkdir -p public; {COUNT} >public/said.txt", {"db": "postgresql"}
    for _ in range(2):
        with started(tmp_path, SERVES, services=behind, setup=FILL, prepare=ask) as running:
            assert said(running) == "2\n"
    assert (tmp_path / "fills").read_text() == "filled\n"


UNDONE = """SELECT sum(n_mod_since_analyze + n_ins_since_vacuum)
FROM pg_stat_user_tables WHERE schemaname = 'public'"""
"""Rows for which autovacuum might begin in the middle of a slot."""


@pytest.mark.long
def test_statements_are_planned_for_what_setup_left(tmp_path: Path) -> None:
    behind, fill = {"db": "postgresql"}, MAKES["postgresql"]
    with started(
        tmp_path, SERVES, services=behind, setup=fill, prepare="mkdir -p public"
    ) as running:
        assert asked(running, "postgresql", UNDONE) == "0\n"
        assert asked(running, "postgresql", COUNTED["postgresql"]) == "2\n"


def test_a_setup_that_fails_is_reported_before_anything_is_measured(tmp_path: Path) -> None:
    fails = 'psql -q -v ON_ERROR_STOP=1 -c "SELECT nowhere"'
    words = ("compare", CMD, CMD, "--service=db=postgresql", f"--setup={fails}")
    failed = webdyno(*words, "--output=run", folder=tmp_path)
    assert failed.returncode == Exit.FAILED, failed.stderr
    assert f"setup failed with exit code 1 (in {tmp_path} as " in failed.stderr
    assert f'): {fails}\n    ERROR:  column "nowhere" does not exist' in failed.stderr
    assert not (tmp_path / "run").exists()
    assert left_behind(tmp_path) == []


def test_a_setup_that_nothing_keeps_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match="there are none that keep data; prepare runs before each"),
        started(tmp_path, SERVES, services={"cache": "memcached"}, setup="true"),
    ):
        pass


def test_a_database_that_dies_is_reported(tmp_path: Path) -> None:
    (tmp_path / "public").mkdir()
    with started(tmp_path, SERVES, services={"db": "postgresql"}) as running:
        process = running.services()["db"].process
        assert process is not None
        os.kill(running.services()["db"].pids()[0], signal.SIGQUIT)
        while process.poll() is None:
            time.sleep(0.01)
        with pytest.raises(StackDied, match="PostgreSQL ended by itself with exit code"):
            running.check_alive()


def shared_memory() -> set[str]:
    """Name what databases share by files, and by System V that nobody uses any more."""
    segments = [it.split() for it in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    unused = {it[1] for it in segments if it[6] == "0"}
    return {it.name for it in Path("/dev/shm").glob("PostgreSQL.*")} | unused  # noqa: S108


@pytest.mark.parametrize("ends_by", [further(signal.SIGINT), signal.SIGKILL])
def test_nothing_of_a_database_outlives_webdyno(tmp_path: Path, ends_by: signal.Signals) -> None:
    before = shared_memory()
    library_of(tmp_path)
    asked = ("compare", "rev:.", "rev:.", "--path=/books", *QUICK, "--output=run")
    with started_webdyno(*asked, folder=tmp_path) as process:
        wait_for(tmp_path / "run/slots.jsonl", 4)
        process.send_signal(ends_by)
        process.communicate()
        assert left_behind(tmp_path) == []
    left, deadline = shared_memory() - before, time.monotonic() + PATIENCE_S
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        left &= shared_memory()  # others' come and go meanwhile
    assert left == set()


MAKES = {
    "postgresql": """psql -qAt -v ON_ERROR_STOP=1 <<'E'
CREATE TABLE author (id int PRIMARY KEY, name text);
CREATE TABLE book (
    id int GENERATED ALWAYS AS IDENTITY, author int REFERENCES author ON DELETE CASCADE,
    title text, long int GENERATED ALWAYS AS (length(title)) STORED
);
CREATE TABLE empty (n serial);
INSERT INTO author VALUES (1, 'a'), (2, 'b');
INSERT INTO book (author, title) VALUES (1, 'x'), (2, 'yy');
E""",
    "mariadb": """mariadb --no-defaults -u site site <<'E'
CREATE TABLE author (id int PRIMARY KEY, name text);
CREATE TABLE book (
    id int AUTO_INCREMENT PRIMARY KEY, author int, title varchar(9),
    `long` int GENERATED ALWAYS AS (length(title)) STORED,
    FOREIGN KEY (author) REFERENCES author (id) ON DELETE CASCADE
);
CREATE TABLE empty (n int AUTO_INCREMENT PRIMARY KEY);
INSERT INTO author VALUES (1, 'a'), (2, 'b');
INSERT INTO book (author, title) VALUES (1, 'x'), (2, 'yy');
E""",
    "redis": 'redis-cli -u "$REDIS_URL" MSET a 1 b 2; redis-cli -u "$REDIS_URL" RPUSH c 1 2',
}
"""Commands that fill a service."""
CHANGES = (
    "DELETE FROM author WHERE id = 1; UPDATE book SET title = 'zzz'; INSERT INTO empty VALUES ({})"
)
SHOWS = "SELECT * FROM author; SELECT * FROM book; SELECT * FROM empty"


COUNTED = {
    "postgresql": "SELECT reltuples FROM pg_class WHERE relname = 'author'",
    "mariadb": "SELECT cardinality FROM information_schema.statistics WHERE table_name = 'author'",
}
"""How many rows statements are planned for."""


def asked(running: RunningStack, service: str, words: str) -> str:
    """Ask a service as a client does, in its variables."""
    web = running.services()["web"]
    program = {
        "postgresql": ["psql", "-qAt", "-c"],
        "mariadb": ["mariadb", "--no-defaults", "-usite", "-N", "site", "-e"],
        "redis": ["sh", "-c", 'redis-cli --no-auth-warning -u "$REDIS_URL" $0'],
    }[service]
    done = subprocess.run(
        [*program, words], env=web.environment, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize(
    ("service", "changes", "shows"),
    [
        ("postgresql", CHANGES.format("DEFAULT"), SHOWS),
        further("mariadb", CHANGES.format("NULL"), SHOWS),
        further("redis", "RENAME a d", "EXISTS a"),
    ],
)
def test_what_a_service_held_is_put_back_as_often_as_wanted(
    tmp_path: Path, service: str, changes: str, shows: str
) -> None:
    (tmp_path / "public").mkdir()
    behind = {"db": service}
    with started(tmp_path, SERVES, services=behind, setup=MAKES[service]) as running:
        db = running.services()["db"]
        before = sorted(asked(running, service, shows).split())
        db.take_snapshot()
        for _ in range(2):
            asked(running, service, changes)
            assert sorted(asked(running, service, shows).split()) != before
            db.restore()
            assert sorted(asked(running, service, shows).split()) == before
            if service in COUNTED:
                assert asked(running, service, COUNTED[service]) == "2\n"
            if service == "postgresql":
                assert asked(running, service, UNDONE) == "0\n"
        if service == "postgresql":
            asked(running, service, "INSERT INTO empty VALUES (DEFAULT)")
            assert asked(running, service, "SELECT n FROM empty") == "1\n"


def test_slots_begin_alike_only_where_something_can_be_put_back(tmp_path: Path) -> None:
    done = webdyno("compare", CMD, CMD, "--set=state.reset=slot", folder=tmp_path)
    assert done.returncode == Exit.USER_ERROR
    assert 'state.reset = "slot": ' in done.stderr
    assert "has no service that can be put back" in done.stderr


def library_of(folder: Path, books: str = library.JOINED) -> Path:
    """A repository of the library, whose working tree looks books up in this way."""
    library.write(folder)
    make_repository(folder)
    library.write(folder, books)
    return folder


@pytest.mark.long
def test_statements_of_requests_are_counted_and_named(tmp_path: Path) -> None:
    library_of(tmp_path, library.ONE_BY_ONE)
    asked_for = ("compare", "rev:.", "rev:main", "--path=/books", *QUICK)
    run_rounds(1, *asked_for, folder=tmp_path)
    run = RunFolder.open(tmp_path / "run")
    slots = [it for it in run.records() if isinstance(it, SlotRecord)]
    for slot in slots:
        assert slot.readings
        use = slot.readings.databases["db"]
        texts = {it.text: it.calls for it in use.statements}
        per_book = texts.get("SELECT name FROM author WHERE id = $1", 0)
        books = sum(texts.values()) - per_book
        assert per_book == (50 * books if slot.variant == "working tree" else 0)
        assert use.calls >= responses(slot) > 0
        assert use.rows_written == 0
        assert use.time_s


@pytest.mark.measures
def test_a_gate_finds_a_query_for_each_row_and_names_it(tmp_path: Path) -> None:
    library_of(tmp_path, library.ONE_BY_ONE)
    limit = "--fail-if=statements > +10%"
    asked_for = ("gate", "--base=main", "--path=/books", limit, "--output=run")
    done = webdyno(*asked_for, *QUICK, folder=tmp_path)
    assert done.returncode == Exit.WORSE, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "FAIL: /books needs 51× the database statements per request (95% CI 51–51×; " in said
    assert (
        "/books: head: 51.0 statements per request, baseline: 1.00: "
        "SELECT name FROM author WHERE id = $1 50.0×" in said
    )


@pytest.mark.long
def test_with_reset_each_slot_begins_with_the_same_data(tmp_path: Path) -> None:
    library_of(tmp_path, library.ONE_BY_ONE)
    with (tmp_path / "webdyno.toml").open("a") as file:
        file.write('[state]\nreset = "slot"\n')
        file.write(
            '[[requests]]\npath = "/notes"\n[[requests]]\npath = "/notes"\nmethod = "POST"\n'
        )
    run_rounds(1, "compare", "rev:.", "rev:main", *QUICK, folder=tmp_path)
    run = RunFolder.open(tmp_path / "run")
    slots = [it for it in run.records() if isinstance(it, SlotRecord)]
    held = [it.readings.databases["db"] for it in slots if it.readings]
    assert len({it.bytes_before for it in held}) == 1
    assert all(it.rows_written and it.bytes_after > it.bytes_before for it in held)
    assert {code for it in slots for code in it.load.by_status} == {"200"}


def test_redis_by_tcp_lets_in_who_has_its_password(tmp_path: Path) -> None:
    (tmp_path / "public").mkdir()
    with started(tmp_path, SERVES, services={"db": "redis"}) as running:
        db = running.services()["db"]
        assert asked(running, "redis", "PING") == "PONG\n"
        variables = running.services()["web"].environment
        assert f":{variables['DB_PASSWORD']}@" in variables["REDIS_URL"]
        with socket.create_connection((db.address.host, db.address.port)) as stranger:
            stranger.sendall(b"DBSIZE\r\n")
            assert stranger.recv(100).startswith(b"-NOAUTH")
        readings = [read_status(db) for _ in range(3)]
    first, *_, last = readings
    assert first
    assert last
    # The question in the middle is the only one that wasn't asked for the two readings.
    counted = last.since(first)
    assert (counted.requests, counted.connections) == (2, 1)
