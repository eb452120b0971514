"""Settings of an experiment that the command line gives: `--set` and `--vary`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from webdyno.config.checks import FACTORS, with_value
from webdyno.config.reading import KeyPath, written_value
from webdyno.core.errors import UserError
from webdyno.core.variant import key_parts

LONGEST_FLAG = 200
"""Letters of a flag that messages show."""
REQUESTS = "requests"
MOST_PARTS = 10

TIME: KeyPath = ("measure", "budget_s")
TIME_IS_LIMIT: KeyPath = ("measure", "budget_is_limit")


class Override(NamedTuple):
    """A setting, and the flag that gave it."""

    key: KeyPath
    value: object
    flag: str

    @property
    def sets(self) -> KeyPath:
        """The setting that it is about, be it given or varied."""
        varied = self.key[0] == FACTORS and len(self.key) == 2
        return key_parts(str(self.key[1])) if varied else self.key


def read_overrides(texts: Iterable[str]) -> list[Override]:
    """Read `--set KEY=VALUE`: dotted keys, values as in TOML, anything else is taken as text.

    A key is one of the experiment, or a setting of a variant: `load.connections`, `nginx.workers`.
    """
    return [_setting(text, f"--set {text:.{LONGEST_FLAG}}") for text in texts]


def time_limit(value: object, flag: str) -> list[Override]:
    """Give what `--time` sets: how long is measured, and that it never takes longer."""
    return [Override(key, value if key == TIME else True, flag) for key in (TIME, TIME_IS_LIMIT)]


def factors(texts: Iterable[str]) -> list[Override]:
    """Read `--vary KEY=LEVEL,LEVEL…`: a factor and its levels, values as in TOML."""
    return [_factor(text, f"--vary {text:.{LONGEST_FLAG}}") for text in texts]


def overridden(data: dict[str, Any], overrides: Sequence[Override]) -> dict[str, Any]:
    """Give an experiment's data with other settings; what is set isn't varied any more.

    Raise UserError when two flags are about the same setting: which of them counts would be a
    guess.
    """
    seen: dict[KeyPath, str] = {}
    for given in overrides:
        override = _spelled_out(given, data)
        if other := seen.get(override.sets):
            raise UserError(f"{override.flag}: {other} is about the same setting; give one of them")
        seen[override.sets] = override.flag
        data = with_value(_unvaried(data, override.sets), *override)
    return _without_paths(data) if (REQUESTS,) in seen else data


def _spelled_out(override: Override, data: Mapping[str, Any]) -> Override:
    """Give `nginx.workers`, a setting of a variant, its place in the experiment."""
    variants = data.get("variants")
    names = sorted(variants, key=len, reverse=True) if isinstance(variants, dict) else []
    varied = override.key[0] == FACTORS and len(override.key) == 2
    written = str(override.key[1]) if varied else ".".join(map(str, override.key))
    for name in names:
        if written.startswith(f"{name}.") and (setting := written.removeprefix(f"{name}.")):
            if varied:
                quoted = f'"{name}"' if "." in name else name
                key = f"variants.{quoted}.settings.{setting}"
                return override._replace(key=(FACTORS, key))
            return override._replace(key=("variants", name, "settings", setting))
    return override


def _unvaried(data: dict[str, Any], key: KeyPath) -> dict[str, Any]:
    varied = data.get(FACTORS)
    if not isinstance(varied, dict):
        return data
    return {**data, FACTORS: {other: varied[other] for other in varied if key_parts(other) != key}}


def _without_paths(data: dict[str, Any]) -> dict[str, Any]:
    """Exclude what an experiment asks for, where flags say something else."""
    variants, load = data.get("variants"), data.get("load")
    if isinstance(load, dict):
        data = {**data, "load": {key: load[key] for key in load if key != "paths"}}
    if isinstance(variants, dict):
        own = {name: _without(variant, "paths") for name, variant in variants.items()}
        data = {**data, "variants": own}
    return _unvaried(data, ("load", "paths"))


def _without(variant: object, key: str) -> object:
    if not isinstance(variant, dict):
        return variant
    kept = {name: value for name, value in variant.items() if name != key}
    return kept | ({"load": _without(variant["load"], key)} if "load" in variant else {})


def _setting(text: str, flag: str) -> Override:
    key, equals, value = text.partition("=")
    if not equals or not _is_key(key):
        raise UserError(f"{flag}: should look like KEY=VALUE, such as load.connections=16")
    return Override(key_parts(key), written_value(value, flag), flag)


def _factor(text: str, flag: str) -> Override:
    key, equals, levels = text.partition("=")
    if not equals or not _is_key(key) or not all(levels.split(",")):
        raise UserError(f"{flag}: should look like KEY=LEVEL,LEVEL, such as load.connections=1,2,4")
    return Override(
        (FACTORS, key), [written_value(level, flag) for level in levels.split(",")], flag
    )


def _is_key(key: str) -> bool:
    parts = key_parts(key)
    return key.isprintable() and 0 < len(parts) <= MOST_PARTS and all(parts)
