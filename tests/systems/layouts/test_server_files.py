"""Files of settings of application servers, which would lead out of the folder."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Case, check
from systems.layouts.test_php_and_ruby_layouts import BUNDLE, PUMA, RAILS
from systems.layouts.test_python_layouts import FLASK, GUNICORN, VENV
from webdyno.systems.layouts import find_app

FLASK_BY_UWSGI = {"app.py": FLASK, "requirements.txt": "flask\nuwsgi\n"}
INSTALL = f"{VENV} -r requirements.txt gunicorn"
BY_FLAG = "--http-socket 127.0.0.1:$PORT"
CASES = {
    "Gunicorn's": Case(
        {
            "requirements.txt": "flask\ngunicorn\n",
            "app.py": FLASK,
            "gunicorn.conf.py": 'bind = "unix:/run/shop.sock"\nworkers = 3\n'
            'accesslog = "/var/log/shop/access.log"\nerrorlog = "-"\n'
            "pidfile = '/run/shop.pid'\nuser = \"www-data\"\n",
        },
        (
            f".venv/bin/gunicorn app:shop {GUNICORN} --access-logfile access.log "
            "--pid gunicorn.pid --user $(id -u)"
        ),
        f"{VENV} -r requirements.txt",
        says=("gunicorn.conf.py: accesslog, pidfile, user would lead out of here",),
    ),
    "Puma's, of a server with Capistrano": Case(
        {
            **RAILS,
            "config/puma.rb": 'dir = "/srv/shop/shared"\nworkers 2\n'
            'directory "/srv/shop/current"\nbind "unix://#{dir}/sockets/puma.sock"\n'
            'pidfile ENV.fetch("PIDFILE") {\n  if production?\n    "/srv/shop/puma.pid"\n'
            '  else\n    "puma.pid"\n  end\n}\nstate_path "#{dir}/puma.state"\n'
            'stdout_redirect "#{dir}/out.log", "#{dir}/err.log", true\n'
            "activate_control_app\n",
        },
        (
            f"bundle exec {PUMA} --pidfile puma.pid --state puma.state "
            "--redirect-stdout /dev/stdout --redirect-stderr /dev/stderr --redirect-append "
            "--control-url auto --dir ."
        ),
        BUNDLE,
        says=("puma.rb: pidfile, state_path, stdout_redirect, activate_control_app, directory",),
        others={"prepare": "bin/rails db:prepare"},
    ),
    "Puma's, in a folder that Git doesn't keep": Case(
        {"config.ru": "", "config/puma.rb": 'port 80\npidfile "tmp/pids/server.pid"\n'},
        f"{PUMA} --pidfile puma.pid",
    ),
    "Puma's, as Rails makes it": Case(
        {
            "config.ru": "",
            "tmp/pids/.keep": "",
            "config/puma.rb": 'port ENV.fetch("PORT", 3000)\npidfile "tmp/pids/server.pid"\n',
        },
        PUMA,
    ),
    "Puma's, with a port of its own": Case(
        {
            "config.ru": "",
            "Procfile": "web: puma -C other/puma.rb\n",
            "other/puma.rb": 'bind "tcp://0.0.0.0:8080"\n',
        },
        "puma -C other/puma.rb --bind tcp://127.0.0.1:$PORT",
    ),
    "uWSGI's, behind nginx": Case(
        {
            **FLASK_BY_UWSGI,
            "Procfile": "web: uwsgi --ini deploy/uwsgi.ini\n",
            "deploy/uwsgi.ini": "[uwsgi]\nmodule = app:shop\nsocket = /run/shop.sock\n"
            "chdir=/srv/shop\nhome = /srv/venv\nuid = www-data\ndaemonize = shop.log\n"
            "processes = 4\n",
        },
        f".venv/bin/uwsgi --ini deploy/uwsgi.webdyno.ini {BY_FLAG} --virtualenv .venv",
        (
            f"{INSTALL} && grep -vE '^[[:space:]]*"
            "(socket|daemonize|uid|home|chdir)[[:space:]]*=' deploy/uwsgi.ini "
            ">deploy/uwsgi.webdyno.ini"
        ),
        says=("deploy/uwsgi.ini: socket, daemonize, uid, home, chdir would lead out of here",),
    ),
    "uWSGI's, for Heroku": Case(
        {
            **FLASK_BY_UWSGI,
            "Procfile": "web: uwsgi uwsgi.ini\n",
            "uwsgi.ini": "[uwsgi]\nhttp-socket = :$(PORT)\nmodule = app:shop\n",
        },
        ".venv/bin/uwsgi uwsgi.ini --virtualenv .venv",
        INSTALL,
    ),
    "uWSGI's, whose environment is a variable": Case(
        {
            **FLASK_BY_UWSGI,
            "Procfile": "web: uwsgi uwsgi.ini\n",
            "uwsgi.ini": "[uwsgi]\nhttp-socket=:$(PORT)\nvirtualenv=$(VIRTUAL_ENV)\n",
        },
        "VIRTUAL_ENV=.venv .venv/bin/uwsgi uwsgi.ini",
        INSTALL,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_leads_elsewhere_is_overridden(case: Case, tmp_path: Path) -> None:
    check(tmp_path, case)


def test_a_file_that_is_not_there_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.ru").write_text("")
    (tmp_path / "Procfile").write_text("web: uwsgi none.ini && puma -C none.rb -p $PORT\n")
    found = find_app(tmp_path)
    assert found
    assert found.start == "uwsgi none.ini && puma -C none.rb -p $PORT"
