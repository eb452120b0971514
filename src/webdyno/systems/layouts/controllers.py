"""Routes that stand below what their file or class says: of NestJS, Spring, Symfony, Laravel."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from webdyno.systems.tables import read_text

PATH = r"""(?:\{\s*)?(?:(?:value|path)\s*[=:]\s*)?[{\[]?\s*["'`](?P<path>[^"'`$]{0,200})["'`]"""
REST = r"[^)]{0,300}\)"
"""Of what stands in parentheses."""
UNTIL_CLASS = (
    rf"(?:\s*@[\w.]+(?:\({REST})?|\s*(?:export|default|public|abstract|final|open))*\s*class\b"
)
OF_NEST = re.compile(rf"@Controller\((?:\s*{PATH}{REST}|\)){UNTIL_CLASS}")
OF_SPRING = re.compile(rf"@RequestMapping\(\s*{PATH}{REST}{UNTIL_CLASS}")
CLASSES = {".ts": OF_NEST, ".js": OF_NEST, ".java": OF_SPRING, ".kt": OF_SPRING}
METHOD = re.compile(
    rf"@(?P<method>Get|Post|Put|Patch|Delete)(?:Mapping)?(?:\((?:\s*{PATH}{REST}|\)))?(?=\s)"
)
ATTRIBUTE = re.compile(
    r"""#\[Route\(\s*(?:path:\s*)?["'](?P<path>[^"']{0,200})["'](?P<rest>.{0,300}?)\)\]""",
    re.DOTALL,
)
CLASS_OF_PHP = re.compile(r"(?:\s*#\[[^\n]*\])*\s*(?:(?:final|abstract|readonly)\s+)*class\b")
METHODS_OF_PHP = re.compile(r"methods:\s*(\[[^\]]*[A-Z][^\]]*\]|[\"'][A-Z]+[\"'])")
REQUIREMENT = re.compile(r"<[^>]*>|(?<=\w):\w+(?=\})")
"""Of a parameter, as in `{page<\\d+>}` and `{slug:post}`."""
OF_ALL = re.compile(r"""setGlobalPrefix\(\s*["'`](?P<path>[^"'`]+)["'`]""")
SETTINGS = ("application.properties", "application.yml", "application.yaml")
CONTEXT_PATH = re.compile(r"(?:context|base)-path\s*[:=]\s*[\"']?(?P<path>/[\w./-]+)")
API_FILE = ("routes", "api.php")
API_PREFIX = re.compile(r"""apiPrefix:\s*["'](?P<path>[^"']*)["']""")
"""Laravel's, which is `api` where nothing is said."""


def routes_of_controllers(file: Path, text: str) -> Iterator[tuple[str, str]]:
    """Return method and path of what classes answer that have a path of their own."""
    if file.suffix == ".php":
        yield from _of_symfony(text)
    pattern = CLASSES.get(file.suffix)
    classes = list(pattern.finditer(text)) if pattern else []
    ends = [*(later.start() for later in classes[1:]), len(text)]
    for controller, end in zip(classes, ends, strict=False):
        for handler in METHOD.finditer(text, controller.end(), end):
            whole = joined(controller["path"] or "", handler["path"] or "")
            yield handler["method"].upper(), whole


def _of_symfony(text: str) -> Iterator[tuple[str, str]]:
    """Return what attributes say, of which one before a class is for all that follow."""
    above = ""
    for route in ATTRIBUTE.finditer(text):
        path = REQUIREMENT.sub("", route["path"])
        if CLASS_OF_PHP.match(text, route.end()):
            above = path
        else:
            methods = METHODS_OF_PHP.search(route["rest"])
            named = re.findall(r"[A-Z]+", methods[1]) if methods else ["GET"]
            yield "GET" if "GET" in named else named[0], joined(above, path)


def _context_path(file: Path) -> str:
    """Return what Spring's configuration puts before all paths."""
    resources = next((up / "resources" for up in file.parents if up.name == "main"), None)
    texts = (read_text(resources / name) or "" for name in SETTINGS) if resources else ()
    given = next(filter(None, map(CONTEXT_PATH.search, texts)), None)
    return given["path"] if given else ""


def stands_below(file: Path, texts: Mapping[Path, str]) -> str:
    """Return the path that all routes of a file stand below; empty where there is none."""
    if file.parts[-2:] == API_FILE:
        given = next(filter(None, map(API_PREFIX.search, texts.values())), None)
        return given["path"] if given else "api"
    if file.suffix in {".java", ".kt"}:
        return _context_path(file)
    if "@nestjs/common" in texts[file]:
        given = next(filter(None, map(OF_ALL.search, texts.values())), None)
        return given["path"] if given else ""
    return ""


def joined(*parts: str) -> str:
    """Return a path of parts, however they begin and end."""
    return "/" + "/".join(filter(None, (part.strip("/") for part in parts)))
