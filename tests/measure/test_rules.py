"""Rules of sites: an honest program keeps them, and each cheat is found and named."""

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest

from measure import cheats
from measure.honest import Honest, served
from variants import further
from webdyno.config import Catalogue
from webdyno.core.load import Load
from webdyno.core.stack import Rule
from webdyno.host.this_machine import Testbed
from webdyno.host.users import make_private
from webdyno.host.workspace import Workspace
from webdyno.load.asking import Conversation
from webdyno.measure.checked_program import BrokenRule, CheckedProgram, RunningDatabase
from webdyno.measure.site_rules import RULES
from webdyno.servers.layout import Deployment, lay_out
from webdyno.servers.prepared import site_view
from webdyno.servers.service_graph import resolve_services

CATALOGUE = Catalogue.load()
TABLES = {"db": "world", "fortunes": "fortune", "crud": "item"}
"""By site: the one that is filled for it."""
FILLED_AS: dict[Rule, str] = {"queries": "db", "updates": "db"}


@dataclass(frozen=True)
class Filled:
    """A database with the tables of all sites."""

    database: RunningDatabase
    url: str


@pytest.fixture(scope="module")
def server() -> Iterator[Filled]:
    site, testbed = CATALOGUE.site("db"), Testbed()
    with Workspace() as workspace:
        view = site_view(site, workspace.path, workspace.path, {})
        logs = make_private(workspace.path / "_log")
        laid_out = lay_out(
            resolve_services(site.services, 1), Deployment(testbed, workspace, logs, site, view)
        )
        service = laid_out.services["db"]
        try:
            service.start()
            service.wait_until_it_listens()
            yield Filled(RunningDatabase(service), laid_out.environment["DATABASE_URL"])
        finally:
            service.stop()


@pytest.fixture
def filled(server: Filled, rule: Rule) -> Filled:
    """Fill it as the rule's site does, whatever an earlier program left."""
    site = FILLED_AS.get(rule, rule)
    if table := TABLES.get(site):
        sql = (CATALOGUE.site(site).folder / "app" / f"{table}.sql").read_text()
        server.database.rows(f"SET ROLE site; DROP TABLE IF EXISTS {table}; {sql}")
    return server


def keeps(rule: Rule, kind: type[Honest], filled: Filled) -> None:
    with (
        psycopg.connect(filled.url, autocommit=True) as connection,
        served(kind(connection)) as address,
        Conversation(f"http://{address}", Load(timeout_s=10.0)) as client,
    ):
        RULES[rule](CheckedProgram(client, filled.database))


@pytest.mark.parametrize("rule", RULES)
def test_an_honest_program_keeps_it(rule: Rule, filled: Filled) -> None:
    keeps(rule, Honest, filled)


CHEATS: list[object] = [
    ("json", cheats.OtherMessage, "/json should give .*, and gives .*server"),
    ("db", cheats.OneRowForAll, "GET /db made 1 statements that read, 20 are right"),
    ("db", cheats.TableInMemory, "GET /db made 1 statements that read"),
    further(
        "db", cheats.MadeUpRows, r"gives \d+ for id \d+, and the database holds \d+, which it reads"
    ),
    further("db", cheats.OtherKeys, "a row has the keys id and randomNumber"),
    ("queries", cheats.ManyRowsByOne, "queries=2 made 1 statements that read, 2 are right"),
    further("queries", cheats.TableInMemory, r"a statement reads 1e\+04 rows, and one is right"),
    ("queries", cheats.NoMost, "queries=501 gives 501 rows, 500 are right: .* above 500 is 500"),
    ("queries", cheats.NoRows, "queries=0 gives 0 rows, 1 are right"),
    further("queries", cheats.OnlyNumbers, "queries=none has status 400, 200 is right"),
    ("updates", cheats.Unwritten, "which is what it should have written"),
    further("updates", cheats.OldNumbers, "writes the numbers that were there; new ones are right"),
    further("updates", cheats.ManyRowsByOne, "queries=2 made 1 statements that read"),
    further("updates", cheats.NoMost, "queries=501 gives 501 rows"),
    ("fortunes", cheats.NothingAdded, "lacks the row 0, 'Additional fortune"),
    ("fortunes", cheats.Unsorted, "isn't sorted by message, by code points: row 1 should be"),
    further("fortunes", cheats.LikeADictionary, "isn't sorted by message, by code points"),
    ("fortunes", cheats.Unescaped, "the element <(b|script)>.*messages have to be escaped"),
    further("fortunes", cheats.ScriptsEscaped, "is missing, or shown otherwise"),
    ("fortunes", cheats.KeptPage, "GET /fortunes made 0 statements that read, 1 are right"),
    ("fortunes", cheats.KeptMessages, "'Caches show this too late.*is missing"),
    further("fortunes", cheats.NoDoctype, "should begin with <!DOCTYPE html>"),
    ("crud", cheats.FewItems, r"GET /items: pages should be 50, and is 1"),
    ("crud", cheats.KeptItems, "10 times GET /items/1 made 1 statements that read, 10 are right"),
    ("crud", cheats.NoTags, 'GET /items/1 should have ETag: "1", its version, and has None'),
    further("crud", cheats.NeverUnmodified, 'GET /items/1 has status 200, 304 is right: .* is "1"'),
    ("crud", cheats.OneTagForAll, "304, 200 is right: the item was changed since the version"),
    further("crud", cheats.CreatedAs200, "POST /items has status 200, 201 is right"),
    ("crud", cheats.TakesEmptyNames, "201, 400 is right: the body is an empty name"),
    further(
        "crud", cheats.TakesFractions, "201, 400 is right: the body is a price with a fraction"
    ),
    further("crud", cheats.SameVersion, "PUT /items/1001: version should be 2, and is 1"),
    ("crud", cheats.LeavesItems, "DELETE /items/1001 leaves the item in the database"),
    ("upload", cheats.SumOfTheBeginning, "with 65,537 bytes should give"),
    further("upload", cheats.FewBytes, "413, 200 is right: 10,000,000 bytes were sent"),
]


@pytest.mark.parametrize(("rule", "kind", "reported"), CHEATS)
def test_a_cheat_is_found(rule: Rule, kind: type[Honest], reported: str, filled: Filled) -> None:
    with pytest.raises(BrokenRule, match=reported):
        keeps(rule, kind, filled)
