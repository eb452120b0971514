"""`webdyno league`: the ranks of several stacks, and how sure each of them is."""

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.experiment_flags import NOTHING_SAID, AskedFlags
from webdyno.cli.flags import PLAIN_NEW_RUN, NewRunFlags, Out
from webdyno.cli.progress import at_terminal
from webdyno.cli.result import measure_and_show
from webdyno.definitions import Catalogue, CommandLine
from webdyno.lab.ending import Exit
from webdyno.lab.systems import arranged
from webdyno.model.errors import UserError
from webdyno.model.race import FEWEST_IN_RACE, RANKING

USUAL_SITE = "static"


def league(
    *stacks: Annotated[
        str,
        Parameter(
            help="Stacks of the catalogue, or systems of your own, as in duel; all stacks that can "
            "serve the site ('static' unless given) when none is named."
        ),
    ],
    asked: AskedFlags = NOTHING_SAID,
    out: Out = None,
    run: NewRunFlags = PLAIN_NEW_RUN,
) -> Exit:
    """Rank stacks: each against every other, with the ranks that are sure.

    Stacks that can't be distinguished share ranks: "2–4" is where one of them may stand. All
    ranks hold together with 95% confidence. Stacks whose rank is settled leave the race, so that
    the time goes where ranks are open. For several tasks there is a table each, and no total.

    For example

        webdyno league

        webdyno league --site hello-php --budget 30m

        webdyno league nginx lighttpd caddy apache-event --path /100KB.txt

        webdyno league nginx node caddy --vary load.paths=/hello.txt,/100KB.txt

        webdyno league nginx node caddy --set measure.decide_on=server_cpu_us
    """
    known = Catalogue.load(run.catalog)
    if not stacks:
        served = asked.site or USUAL_SITE
        fitting = (it for it in known.stacks.values() if known.site(served) in known.sites_for(it))
        stacks, asked = tuple(it.name for it in fitting), replace(asked, site=served)
    if len(stacks) < FEWEST_IN_RACE:
        raise UserError(
            f"a ranking has {FEWEST_IN_RACE} stacks at least, and these are "
            f"{', '.join(stacks) or 'none'}; two are compared by `webdyno duel`"
        )
    more = CommandLine({"race": RANKING}, {("race",): "league"})
    name, experiment, catalogue = arranged(stacks, asked.read(), known, at_terminal(run.how), more)
    return measure_and_show(name, experiment, catalogue, out, run.how, fail_on=run.fail_on)
