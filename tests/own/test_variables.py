"""Variables of templates are filled, and those without a value named all at once."""

import pytest

from webdyno.model.mistake import Mistake
from webdyno.model.origin import Origin
from webdyno.own.config_files import BRACED_OR_PLAIN, Variables

AT = Origin("a.template", 1)


def test_variables_are_filled_from_what_is_given() -> None:
    variables = Variables({"PORT": "8080"})
    assert variables.filled("listen ${PORT}; $PORT $host", AT) == "listen 8080; $PORT $host"
    filled = variables.filled("$PORT ${PORT} $own", AT, BRACED_OR_PLAIN, {"own"})
    assert filled == "8080 8080 $own"
    variables.demand_all()


def test_all_that_have_no_value_are_named_in_one_message() -> None:
    variables = Variables({})
    variables.filled("a\n${ONE} ${TWO}\n${ONE}", AT)
    variables.filled("${THREE}", Origin("b.conf", 7))
    with pytest.raises(Mistake) as told:
        variables.demand_all()
    for part in ("ONE (a.template:2)", "TWO (a.template:2)", "THREE (b.conf:7)", "--env TWO=VALUE"):
        assert part in str(told.value)


def test_a_secret_does_not_get_into_a_configuration_that_is_kept() -> None:
    with pytest.raises(Mistake, match="would be a secret"):
        Variables({"A": "${env:MINE}"}).filled("${A}", AT)
