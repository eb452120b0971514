"""Variables of the environment that an application's settings read by their types.

Libraries of settings make a variable's name of a field's, so no source has it as a text.
"""

import re
from collections.abc import Callable, Iterator, Mapping

CLASS = re.compile(
    r"^class (?P<name>\w+)\((?P<bases>[^)]*)\):[^\n]*\n(?P<body>(?:[ \t]+[^\n]*\n?|[ \t]*\n)*)",
    re.MULTILINE,
)
ENV_PREFIX = re.compile(r"""env_prefix["']?\s*[=:]\s*["'](\w*)["']""")
NESTED_DELIMITER = re.compile(r"""env_nested_delimiter["']?\s*[=:]\s*["'](\W+|_+)["']""")
FIELD = re.compile(r"^(?P<margin>[ \t]+)(?P<name>[A-Za-z]\w*)[ \t]*:(?P<rest>[^\n]*)", re.MULTILINE)
ALIAS = re.compile(
    r"""\b(?:validation_alias|alias|env)\s*=\s*(?:AliasChoices\(\s*|\[\s*)?["'](\w+)["']"""
)
NO_FIELDS = {"model_config"}
ENVIRONS = re.compile(r"""\benv(?:\.\w+)?\(\s*["'](?P<name>[A-Z][A-Z0-9_]*)["']""")
"""Of environs, django-environ and starlette's Config."""
OF_CONFIG = re.compile(r"""\bconfig\(\s*["'](?P<name>[A-Z][A-Z0-9_]*)["']""")


ANYTHING = re.compile("")


def of_python(text: str, rest: re.Pattern[str] = ANYTHING) -> Iterator[str]:
    """Read classes of settings; `rest`: what stands behind the name of a field."""
    if rest is ANYTHING:
        yield from ENVIRONS.findall(text)
        yield from OF_CONFIG.findall(text)
    known, bodies = {"BaseSettings"}, {}
    for match in CLASS.finditer(text):
        bases = {base.strip().rpartition(".")[2] for base in match["bases"].split(",")}
        bodies[match["name"]] = match["body"]
        if bases & known or any(base.endswith("BaseSettings") for base in bases):
            known.add(match["name"])
            yield from _fields_of_pydantic(match["body"], bodies, rest)


def _fields_of_pydantic(
    body: str, models: Mapping[str, str], rest: re.Pattern[str] = ANYTHING
) -> Iterator[str]:
    """Return the variables of a class of settings; `models`: bodies of classes that it may use.

    `rest`: what stands behind the name of a field.
    """
    prefixed, nested = ENV_PREFIX.search(body), NESTED_DELIMITER.search(body)
    prefix = prefixed[1] if prefixed else ""
    fields = list(FIELD.finditer(body))
    outer = min((len(field["margin"]) for field in fields), default=0)
    ends = [*(field.start() for field in fields[1:]), len(body)]
    for field, end in zip(fields, ends, strict=False):
        is_named = field["name"] not in NO_FIELDS and rest.match(field["rest"])
        if len(field["margin"]) != outer or not is_named:
            continue
        alias = ALIAS.search(body[field.start("rest") : end].partition("\n\n")[0])
        name = (alias[1] if alias else prefix + field["name"]).upper()
        inner = models.get(re.split(r"\W", field["rest"].strip(), maxsplit=1)[0])
        if nested and inner:
            yield from (f"{name}{nested[1]}{part}" for part in _fields_of_pydantic(inner, {}))
        else:
            yield name


STRUCT_TAG = re.compile(r"""\b(?:env|envconfig):"(?P<name>[A-Z][A-Z0-9_]*)[",]""")
GO_STRUCT = re.compile(r"^type (?P<name>\w+) struct \{\n(?P<body>.*?)^\}", re.MULTILINE | re.DOTALL)
GO_FIELD = re.compile(r"^[ \t]+(?P<name>[A-Z]\w*)[ \t]+[\w.]+[ \t]*(?P<tag>`[^`]*`)?", re.MULTILINE)
GO_PREFIX = re.compile(r"""(?:\benv\.New\(|\b(?:Env)?Prefix:)\s*"(?P<prefix>\w+)\"""")
PREFIXED = re.compile(
    r"""\s\*?(?P<type>\w+)\s+`[^`\n]*\b(?:envPrefix|env-prefix):"(?P<prefix>\w*)\""""
)
PROCESSED = re.compile(r"""envconfig\.(?:Must)?Process\(\s*"(?P<prefix>\w*)",""")
VIPER = re.compile(
    r"""\b(?:viper|v|vp)\.(?:Get\w*|SetDefault|BindEnv|IsSet)\(\s*"(?P<key>[\w.-]+)"(?:,\s*"(?P<bound>\w+)")?"""
)
VIPER_PREFIX = re.compile(r"""\.SetEnvPrefix\(\s*"(\w+)"\)""")
WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def _tags_of_go(text: str) -> Iterator[str]:
    """Return names in tags, behind the prefix of a struct and that of all."""
    first = GO_PREFIX.search(text)
    prefixes = {match["type"]: match["prefix"] for match in PREFIXED.finditer(text)}
    begins = [(0, ""), *((match.start(), match["name"]) for match in GO_STRUCT.finditer(text))]
    for match in STRUCT_TAG.finditer(text):
        struct = next(name for begin, name in reversed(begins) if begin <= match.start())
        yield (first["prefix"] if first else "") + prefixes.get(struct, "") + match["name"]


def _of_go(text: str) -> Iterator[str]:
    """Read the tags of caarlos0/env, cleanenv and envconfig, and the keys of viper."""
    yield from _tags_of_go(text)
    if processed := PROCESSED.search(text):
        prefix = f"{processed['prefix']}_" if processed["prefix"] else ""
        for struct in GO_STRUCT.finditer(text):
            for field in GO_FIELD.finditer(struct["body"]):
                tag = field["tag"] or ""
                if 'envconfig:"' not in tag:
                    is_split = 'split_words:"true"' in tag
                    name = WORDS.sub("_", field["name"]) if is_split else field["name"]
                    yield (prefix + name).upper()
    yield from keys_of_viper(text)


def keys_of_viper(text: str) -> Iterator[str]:
    """Return the variables for keys of Go's viper."""
    if "spf13/viper" in text:
        prefixed = VIPER_PREFIX.search(text)
        prefix = f"{prefixed[1]}_" if prefixed else ""
        is_automatic = ".AutomaticEnv()" in text
        for match in VIPER.finditer(text):
            if match["bound"] and "BindEnv" in match[0]:
                yield match["bound"]
            elif is_automatic or "BindEnv" in match[0]:
                yield re.sub(r"[.-]", "_", prefix + match["key"]).upper()


ATTRIBUTES = r"(?:#\[(?:[^\n\]]|\](?!\s)){0,200}\]\s++){0,20}"
"""Each ends at the first bracket that a blank follows: so a text has no second meaning."""
CLAP = re.compile(
    r"#\[(?:arg|clap)\((?P<says>(?:[^()\]]|\([^()]*\))*\benv\b(?:[^()\]]|\([^()]*\))*)\)\]"
    rf"\s*{ATTRIBUTES}(?:pub(?:\([^)]*\))? )?(?P<name>\w+)\s*:\s*(?P<type>\w*)"
)
CLAP_ENV = re.compile(r"""\benv\s*=\s*"(\w+)\"""")
ENVY = re.compile(r"""envy::(?:prefixed\(\s*"(?P<prefix>\w*)"\s*\)|from_env)""")
RUST_STRUCT = re.compile(
    rf"Deserialize[^\n]{{0,200}}\)\]\s*{ATTRIBUTES}(?:pub )?struct (?P<name>\w+)\s*"
    r"\{(?P<body>[^}]*)\}"
)
RUST_FIELD = re.compile(
    r"^[ \t]*(?:pub(?:\([^)]*\))? )?(?P<name>\w+)\s*:\s*(?P<type>\w+)", re.MULTILINE
)
CONFIG_RS = re.compile(
    r"""\bEnvironment::(?:default\(\)|with_prefix\(\s*"(?P<prefix>\w+)"\s*\))(?P<rest>[^;]*)"""
)
SEPARATED = re.compile(r"""\.(?P<what>prefix_separator|separator)\(\s*"(?P<by>[^"]*)"\s*\)""")
DEEPEST = 3


def _of_rust(text: str) -> Iterator[str]:
    """Read the arguments of clap that are variables as well, and what envy and config read."""
    yield from map(name_of_clap, CLAP.finditer(text))
    if envy := ENVY.search(text):
        for struct in RUST_STRUCT.finditer(text):
            for field in RUST_FIELD.finditer(struct["body"]):
                yield ((envy["prefix"] or "") + field["name"]).upper()
    if by_config := CONFIG_RS.search(text):
        structs = {match["name"]: match["body"] for match in RUST_STRUCT.finditer(text)}
        parts = {field["type"] for body in structs.values() for field in RUST_FIELD.finditer(body)}
        by = {match["what"]: match["by"] for match in SEPARATED.finditer(by_config["rest"])}
        separator = by.get("separator", "")
        first = by.get("prefix_separator") or separator or "_"
        prefix = f"{by_config['prefix']}{first}" if by_config["prefix"] else ""
        for name in structs.keys() - parts:
            yield from (f"{prefix}{key}".upper() for key in _keys_of(name, structs, separator))


def name_of_clap(match: re.Match[str]) -> str:
    """Return the variable of an argument."""
    named = CLAP_ENV.search(match["says"])
    return named[1] if named else match["name"].upper()


def _keys_of(
    name: str, structs: Mapping[str, str], separator: str, depth: int = 0
) -> Iterator[str]:
    """Return the keys of a struct; those of structs within it where a separator leads there."""
    for field in RUST_FIELD.finditer(structs[name]):
        if field["type"] not in structs:
            yield field["name"]
        elif separator and depth < DEEPEST:
            inner = _keys_of(field["type"], structs, separator, depth + 1)
            yield from (f"{field['name']}{separator}{key}" for key in inner)


CHECKED = re.compile(
    r"""^[ \t]*["']?(?P<name>[A-Z][A-Z0-9_]+)["']?\s*:\s*"""
    r"""(?:(?:z|Joi|joi|Type|t|v|yup|s|S|Schema|envalid)\.|(?:str|num|port|url|bool|host|email|makeValidator)\()""",
    re.MULTILINE,
)
"""Of zod, joi, typebox, valibot, yup and envalid."""
CONVICT = re.compile(r"""^[ \t]*env:\s*["'](?P<name>[A-Z][A-Z0-9_]+)["']""", re.MULTILINE)
TAKEN_APART = re.compile(r"\{(?P<names>[^{}]*)\}\s*=\s*(?:process|Bun|import\.meta)\.env\b")
ASKED = re.compile(r"""\.get(?:OrThrow)?(?:<[\w\[\]]+>)?\(\s*["'`](?P<name>[A-Z][A-Z0-9_]+)["'`]""")
"""Of ConfigService of NestJS, and of Deno.env and its like."""
CAPITALS = re.compile(r"\b[A-Z][A-Z0-9_]+\b")


def _of_script(text: str) -> Iterator[str]:
    for pattern in (CHECKED, CONVICT, ASKED):
        yield from pattern.findall(text)
    for taken in TAKEN_APART.finditer(text):
        yield from CAPITALS.findall(taken["names"])


BY_PROPERTY = re.compile(r"""@Value\(\s*"\$\{(?P<key>[\w.-]+)\}"\s*\)""")
"""Without a default."""
PROPERTIES = re.compile(
    r"""@ConfigurationProperties\(\s*(?:(?:prefix|value)\s*=\s*)?"(?P<prefix>[\w.-]+)"\s*\)"""
    r"""(?P<rest>.*)""",
    re.DOTALL,
)
JVM_FIELD = re.compile(
    r"(?:private|public|val|var|[(,])\s+(?:final )?(?:(?:String|int|Integer|URI|Duration)\s+)?"
    r"(?P<name>[a-z]\w*)\s*(?=[;,):])"
)


def _of_jvm(text: str) -> Iterator[str]:
    """Read keys of Spring, which it looks up in variables with other letters ("relaxed")."""
    for key in BY_PROPERTY.findall(text):
        yield _relaxed(key)
    if match := PROPERTIES.search(text):
        for name in JVM_FIELD.findall(match["rest"]):
            yield _relaxed(f"{match['prefix']}.{name}")


def _relaxed(key: str) -> str:
    return key.replace("-", "").replace(".", "_").upper()


READERS: Mapping[str, Callable[[str], Iterator[str]]] = {
    ".py": of_python,
    ".go": _of_go,
    ".rs": _of_rust,
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts"), _of_script),
    **dict.fromkeys((".java", ".kt"), _of_jvm),
}
