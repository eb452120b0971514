"""Fills variables of a configuration's template from what `--env` gives."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from webdyno.model.mistake import Mistake
from webdyno.model.origin import Origin
from webdyno.model.text import SECRET

BRACED = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)\}")
"""`${NAME}`; a form has a group `name`, and perhaps a group `default`."""
BRACED_OR_PLAIN = re.compile(r"\$(?:\{(?P<name>[A-Za-z_]\w*)\}|(?P<plain>[A-Za-z_]\w*))")
"""As `envsubst` knows them."""


@dataclass
class Variables:
    """Variables by name; those without a value are noted, to be named all at once."""

    values: Mapping[str, str]
    unset: dict[str, Origin] = field(default_factory=dict, init=False)
    """Where each of them stands first."""

    def filled(
        self, text: str, at: Origin, form: re.Pattern[str] = BRACED, own: Collection[str] = ()
    ) -> str:
        """Fill a text in which `at` is the first line.

        What is in `own` has its value in the configuration itself, and stays.
        """

        def value(found: re.Match[str]) -> str:
            groups = found.groupdict()
            name = groups["name"] or groups.get("plain") or ""
            default = groups.get("default")
            if name in own:
                return found[0]
            if name not in self.values and default is None:
                line = at.line + text.count("\n", 0, found.start())
                self.unset.setdefault(name, at._replace(line=line))
                return found[0]
            given = self.values.get(name, default or "")
            if SECRET.search(given):
                raise Mistake(
                    f"{at.file}: {found[0]} would be a secret of your environment, and the run "
                    f"keeps this configuration; write a value itself, as in --env {name}=VALUE"
                )
            return given

        return form.sub(value, text)

    def demand_all(self) -> None:
        """Raise Mistake, naming all of them, where some have no value."""
        if not self.unset:
            return
        places = ", ".join(f"{name} ({origin})" for name, origin in self.unset.items())
        example = " ".join(f"--env {name}=VALUE" for name in self.unset)
        raise Mistake(f"variables have no value: {places}; give each one, as in {example}")
