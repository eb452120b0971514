"""`webdyno duel`: two stacks against each other, without writing an experiment's file."""

from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.experiment_flags import NOTHING_SAID, AskedFlags
from webdyno.cli.flags import PLAIN_NEW_RUN, NewRunFlags, Out, Why
from webdyno.cli.progress import at_terminal
from webdyno.cli.result import measure_and_show
from webdyno.cli.why import why_afterwards
from webdyno.definitions import Catalogue
from webdyno.lab.ending import Exit
from webdyno.lab.systems import arranged


def duel(
    stack: Annotated[
        str,
        Parameter(
            help="What the question is about: a stack of the catalogue, or a system of your own "
            "(cmd:COMMAND, rev:REVISION, conf:FILE, image:NAME, url:URL)."
        ),
    ],
    baseline: Annotated[str, Parameter(help="What it is compared with, likewise.")],
    *,
    asked: AskedFlags = NOTHING_SAID,
    why: Why = False,
    out: Out = None,
    run: NewRunFlags = PLAIN_NEW_RUN,
) -> Exit:
    """Compare two stacks: both serve the same site under the same load, and take turns.

    For example

        webdyno duel nginx apache-event

        webdyno duel nginx apache-prefork --site static --path /100KB.txt

        webdyno duel nginx apache-event --path /100KB.txt --testbed netns --link 100mbit

        webdyno duel nginx apache-event --question "not-slower-by 5%"

        webdyno duel nginx nginx        # how small a difference can be seen here?

    Systems of your own, see docs/own.md:

        webdyno duel 'cmd:gunicorn app:app -b 127.0.0.1:$PORT' 'cmd:uvicorn app:app --port $PORT'

        webdyno duel rev:. rev:main --path /api/items      # as webdyno.toml says how to start it

        webdyno duel conf:new.conf conf:old.conf --root public

        webdyno duel image:app:2.0 image:app:1.9

        webdyno duel url:http://127.0.0.1:9000 url:http://127.0.0.1:9001
    """
    name, experiment, catalogue = arranged(
        [baseline, stack], asked.read(), Catalogue.load(run.catalog), at_terminal(run.how)
    )
    afterwards = why_afterwards(experiment, run.how) if why else None
    return measure_and_show(
        name, experiment, catalogue, out, run.how, fail_on=run.fail_on, afterwards=afterwards
    )
