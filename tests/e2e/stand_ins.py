"""Images by the names that Docker's registry has them under, made of programs of this machine.

A stand-in does what the examples ask of its image: it runs the same steps of a Dockerfile, reads
the same variables and folders, and listens on the same port.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

OF_LIBRARIES = re.compile(r"(/\S+)(?= \(0x)")
USER = 999
SHELL = "/bin/sh"
TOOLS = ("rm", "mkdir", "chown", "setpriv")
NOTHING = f"#!{SHELL}\n"
PHP = "php:8.4-apache"
PHP_EXTENSIONS = ("pdo", "pdo_pgsql")
PHP_STARTS = f"""#!{SHELL}
exec php -n {" ".join(f"-d extension={name}" for name in PHP_EXTENSIONS)} \\
    -S 0.0.0.0:80 -t /var/www/html
"""
POSTGRESQL = "postgres:17"
POSTGRESQL_PROGRAMS = ("postgres", "initdb", "pg_ctl", "psql", "pg_isready")
POSTGRESQL_STARTS = f"""#!{SHELL}
set -e
export PGDATA=/var/lib/postgresql/data
as() {{
    setpriv --reuid={USER} --regid={USER} --clear-groups "$@"
}}
mkdir -p "$PGDATA" /var/run/postgresql
chown {USER}:{USER} "$PGDATA" /var/run/postgresql /tmp
as initdb --username="$POSTGRES_USER" --auth=trust --no-locale --encoding=UTF8 --no-sync >/dev/null
echo "host all all all trust" >>"$PGDATA/pg_hba.conf"
as pg_ctl --wait --options="-c listen_addresses= -k /tmp" start >/dev/null
ask() {{
    psql --quiet --no-psqlrc --host=/tmp --username="$POSTGRES_USER" "$@"
}}
ask --dbname=postgres --command="CREATE DATABASE $POSTGRES_DB"
for file in /docker-entrypoint-initdb.d/*.sql; do
    ask --dbname="$POSTGRES_DB" --set=ON_ERROR_STOP=1 --file="$file"
done
as pg_ctl --wait --mode=fast stop >/dev/null
exec setpriv --reuid={USER} --regid={USER} --clear-groups \\
    postgres -c "listen_addresses=*" -k /var/run/postgresql
"""


def import_stand_ins(address: str) -> None:
    """Have a daemon of Docker's know both images."""
    with tempfile.TemporaryDirectory(prefix="wd-image-") as folder:
        top = Path(folder)
        _import(address, PHP, _php(top / "php"), 80)
        _import(address, POSTGRESQL, _postgresql(top / "postgresql"), 5432)


def why_no_stand_ins() -> str | None:
    """Return what they are made of and isn't here."""
    programs = ("php", "pg_config", *TOOLS)
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        return f"there is no {' and no '.join(missing)} here to make images of"
    lacking = [name for name in PHP_EXTENSIONS if not (_extensions() / f"{name}.so").is_file()]
    return f"PHP has no {' and no '.join(lacking)} here" if lacking else None


def _php(root: Path) -> Path:
    program = Path(str(shutil.which("php"))).resolve()
    extensions = [_extensions() / f"{name}.so" for name in PHP_EXTENSIONS]
    _begin(root, [program, *extensions])
    (root / "usr/bin/php").symlink_to(program)
    for name in ("apt-get", "docker-php-ext-install"):
        _script(root / "usr/bin" / name, NOTHING)
    (root / "var/www/html").mkdir(parents=True)
    _script(root / "start", PHP_STARTS)
    return root


def _postgresql(root: Path) -> Path:
    programs, libraries, shared = (
        Path(_said("pg_config", f"--{which}").strip())
        for which in ("bindir", "pkglibdir", "sharedir")
    )
    _begin(root, [*(programs / name for name in POSTGRESQL_PROGRAMS), *libraries.glob("*.so")])
    for name in POSTGRESQL_PROGRAMS:
        (root / "usr/bin" / name).symlink_to(programs / name)
    shutil.copytree(shared, root / shared.relative_to("/"), symlinks=False)
    _script(root / "start", POSTGRESQL_STARTS)
    return root


def _begin(root: Path, files: Iterable[Path]) -> None:
    """Make a file system with a shell, some tools, and these files with their libraries."""
    tools = [Path(str(shutil.which(name))) for name in TOOLS]
    for folder in ("bin", "usr/bin", "etc", "tmp", "var/lib"):
        (root / folder).mkdir(parents=True)
    shutil.copy2(Path(SHELL).resolve(), root / "bin/sh")
    (root / "etc/passwd").write_text(f"root:x:0:0::/:\npostgres:x:{USER}:{USER}::/:\n")
    wanted = [*tools, *files]
    libraries = OF_LIBRARIES.findall(_said("ldd", SHELL, *map(str, wanted)))
    for file in dict.fromkeys([*wanted, *map(Path, libraries)]):
        copy = root / file.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file.resolve(), copy)


def _script(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


def _extensions() -> Path:
    return Path(_said("php", "-n", "-r", "echo PHP_EXTENSION_DIR;"))


def _said(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def _import(address: str, name: str, root: Path, port: int) -> None:
    changes = (f"--change=EXPOSE {port}", '--change=CMD ["/start"]')
    words = ["docker", "--host", address, "import", *changes, "-", name]
    with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as packed:
        subprocess.run(words, check=True, stdin=packed.stdout, capture_output=True)
    assert packed.returncode == 0
