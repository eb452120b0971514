"""Variables of the environment that an application's settings read by their types.

Libraries of settings make a variable's name of a field's, so no source has it as a text.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from webdyno.systems.layouts.app import first_of, sources
from webdyno.systems.tables import read_text

EXAMPLES = (
    *(".env.example", ".env.sample", ".env.template", ".env.dist", "env.example", "example.env"),
)
"""Files that show which variables there are."""
ASSIGNED = re.compile(r"^[ \t]*(?:export[ \t]+)?(?P<name>[A-Z][A-Z0-9_]*)=", re.MULTILINE)
PLACEHOLDER = re.compile(r"\$\{([A-Z][A-Z0-9_]*)(?::[^}]*)?\}")
"""Of Spring's, Quarkus' and Micronaut's configurations, with a default or without."""
CONFIGURATIONS = {".properties", ".yml", ".yaml"}


def example_of(folder: Path) -> str:
    """Return the text of the file that shows variables, empty where there is none."""
    name = first_of(folder, *EXAMPLES)
    return (read_text(folder / name) or "") if name else ""


def settings_of(folder: Path) -> set[str]:
    """Return the names of variables that typed settings read, and those of `.env.example`."""
    names = set(ASSIGNED.findall(example_of(folder)))
    for path in sources(folder):
        if read := READERS.get(path.suffix):
            names.update(read(read_text(path) or ""))
    for path in sources(folder, CONFIGURATIONS):
        if path.name.startswith("application"):
            names.update(PLACEHOLDER.findall(read_text(path) or ""))
    return names


CLASS = re.compile(
    r"^class (?P<name>\w+)\((?P<bases>[^)]*)\):[^\n]*\n(?P<body>(?:[ \t]+[^\n]*\n?|[ \t]*\n)*)",
    re.MULTILINE,
)
ENV_PREFIX = re.compile(r"""env_prefix["']?\s*[=:]\s*["'](\w*)["']""")
FIELD = re.compile(r"^(?P<margin>[ \t]+)(?P<name>[A-Za-z]\w*)[ \t]*:(?P<rest>[^\n]*)", re.MULTILINE)
ALIAS = re.compile(
    r"""\b(?:validation_alias|alias|env)\s*=\s*(?:AliasChoices\(\s*|\[\s*)?["'](\w+)["']"""
)
NO_FIELDS = {"model_config"}
ENVIRONS = re.compile(r"""\benv(?:\.\w+)?\(\s*["'](?P<name>[A-Z][A-Z0-9_]*)["']""")
"""Of environs, django-environ and starlette's Config."""
OF_CONFIG = re.compile(r"""\bconfig\(\s*["'](?P<name>[A-Z][A-Z0-9_]*)["']""")


def _of_python(text: str) -> Iterator[str]:
    yield from ENVIRONS.findall(text)
    yield from OF_CONFIG.findall(text)
    known = {"BaseSettings"}
    for match in CLASS.finditer(text):
        bases = {base.strip().rpartition(".")[2] for base in match["bases"].split(",")}
        if bases & known:
            known.add(match["name"])
            yield from _fields_of_pydantic(match["body"])


def _fields_of_pydantic(body: str) -> Iterator[str]:
    prefixed = ENV_PREFIX.search(body)
    prefix = prefixed[1] if prefixed else ""
    fields = list(FIELD.finditer(body))
    outer = min((len(field["margin"]) for field in fields), default=0)
    for field, following in zip(fields, [*fields[1:], None], strict=True):
        if len(field["margin"]) == outer and field["name"] not in NO_FIELDS:
            said = body[field.start("rest") : following.start() if following else len(body)]
            alias = ALIAS.search(said.partition("\n\n")[0])
            yield (alias[1] if alias else prefix + field["name"]).upper()


STRUCT_TAG = re.compile(r"""\b(?:env|envconfig):"(?P<name>[A-Z][A-Z0-9_]*)[",]""")
GO_STRUCT = re.compile(r"^type (?P<name>\w+) struct \{\n(?P<body>.*?)^\}", re.MULTILINE | re.DOTALL)
GO_FIELD = re.compile(r"^[ \t]+(?P<name>[A-Z]\w*)[ \t]+[\w.]+[ \t]*(?P<tag>`[^`]*`)?", re.MULTILINE)
PROCESSED = re.compile(r"""envconfig\.(?:Must)?Process\(\s*"(?P<prefix>\w*)",""")
VIPER = re.compile(
    r"""\b(?:viper|v|vp)\.(?:Get\w*|SetDefault|BindEnv|IsSet)\(\s*"(?P<key>[\w.-]+)"(?:,\s*"(?P<bound>\w+)")?"""
)
VIPER_PREFIX = re.compile(r"""\.SetEnvPrefix\(\s*"(\w+)"\)""")
WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def _of_go(text: str) -> Iterator[str]:
    """Read the tags of caarlos0/env and envconfig, and the keys of viper."""
    yield from STRUCT_TAG.findall(text)
    if processed := PROCESSED.search(text):
        prefix = f"{processed['prefix']}_" if processed["prefix"] else ""
        for struct in GO_STRUCT.finditer(text):
            for field in GO_FIELD.finditer(struct["body"]):
                tag = field["tag"] or ""
                if 'envconfig:"' not in tag:
                    is_split = 'split_words:"true"' in tag
                    name = WORDS.sub("_", field["name"]) if is_split else field["name"]
                    yield (prefix + name).upper()
    if "spf13/viper" in text:
        prefixed = VIPER_PREFIX.search(text)
        prefix = f"{prefixed[1]}_" if prefixed else ""
        is_automatic = ".AutomaticEnv()" in text
        for match in VIPER.finditer(text):
            if match["bound"]:
                yield match["bound"]
            elif is_automatic or "BindEnv" in match[0]:
                yield re.sub(r"[.-]", "_", prefix + match["key"]).upper()


CLAP = re.compile(
    r"#\[(?:arg|clap)\((?P<says>(?:[^()\]]|\([^()]*\))*\benv\b(?:[^()\]]|\([^()]*\))*)\)\]"
    r"(?:\s*#\[[^\n]*\])*\s*(?:pub(?:\([^)]*\))? )?(?P<name>\w+)\s*:"
)
CLAP_ENV = re.compile(r"""\benv\s*=\s*"(\w+)\"""")
ENVY = re.compile(r"""envy::(?:prefixed\(\s*"(?P<prefix>\w*)"\s*\)|from_env)""")
RUST_STRUCT = re.compile(
    r"Deserialize[^\n]*\)\]\s*(?:#\[[^\n]*\]\s*)*(?:pub )?struct \w+\s*\{(?P<body>[^}]*)\}"
)
RUST_FIELD = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))? )?(\w+)\s*:", re.MULTILINE)


def _of_rust(text: str) -> Iterator[str]:
    """Read the arguments of clap that are variables as well, and what envy reads."""
    for match in CLAP.finditer(text):
        named = CLAP_ENV.search(match["says"])
        yield named[1] if named else match["name"].upper()
    if envy := ENVY.search(text):
        for struct in RUST_STRUCT.finditer(text):
            for name in RUST_FIELD.findall(struct["body"]):
                yield ((envy["prefix"] or "") + name).upper()


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
    ".py": _of_python,
    ".go": _of_go,
    ".rs": _of_rust,
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts"), _of_script),
    **dict.fromkeys((".java", ".kt"), _of_jvm),
}
