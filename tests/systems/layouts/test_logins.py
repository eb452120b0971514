"""How users log in, as pages and sources say."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from systems.layouts.laid_out import laid_out
from webdyno.systems.layouts import find_app
from webdyno.systems.layouts.app import FoundApp, project_text
from webdyno.systems.layouts.logins import is_login, login_by_form, login_by_json, login_by_openapi
from webdyno.systems.layouts.routes import routes_of_sources

DJANGO = """
<form action="/search"><input name="q"></form>
<form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="7VqjLrSZ1oM3XkzN">
<input type="hidden" name="next" value="/"><input name="username">
<input type="password" name="password"><input type="checkbox" name="remember"></form>
"""
DEVISE = """
<form action="/users/sign_in?a=b" method="POST"><input type="hidden" name="authenticity_token"
value="Zm9yIHRlc3RzIG9ubHk"><input type="email" name="user[email]">
<input type="password" name="user[password]">
<button name="commit" value="Log in">Log in</button></form>
"""


def test_a_form_fills_in_no_variables_of_who_measures_it() -> None:
    fields = [
        '<input type="hidden" name="a" value="${env:TOKEN}">',
        '<input type="hidden" name="b" value="{{c}}">',
        '<input type="submit" name="commit" value="to ${env:TOKEN}">',
    ]
    page = DJANGO.replace("</form>", f"{''.join(fields)}</form>")
    found = login_by_form(page.encode(), "/accounts/login/", FoundApp("x", "gunicorn x"))
    assert found
    form = found.steps[-1]["form"]
    assert (form["a"], form["b"], form.get("commit")) == ("{{a}}", "{{b}}", None)


def test_a_form_with_a_token_is_written_down() -> None:
    found = login_by_form(DJANGO.encode(), "/accounts/login/?next=/", FoundApp("x", "gunicorn x"))
    assert found
    written = tomllib.loads(project_text(FoundApp("x", "x"), {"/": None}, found))
    selects = "input[name=csrfmiddlewaretoken]"
    assert written["login"] == [
        {"path": "/accounts/login/", "capture": {"csrfmiddlewaretoken": {"css": selects}}},
        {
            "path": "/accounts/login/",
            "method": "POST",
            "form": {
                "csrfmiddlewaretoken": "{{csrfmiddlewaretoken}}",
                "next": "/",
                "username": "${env:LOGIN_NAME}",
                "password": "${env:LOGIN_PASSWORD}",
            },
            "status": 302,
        },
    ]


def test_names_that_no_key_of_toml_is_are_quoted() -> None:
    found = login_by_form(DEVISE.encode(), "/users/sign_in", FoundApp("x", "bundle exec puma"))
    assert found
    written = tomllib.loads(project_text(FoundApp("x", "x"), {}, found))
    first, second = written["login"]
    assert first["capture"] == {"authenticity_token": {"css": "input[name=authenticity_token]"}}
    assert (second["path"], second["status"]) == ("/users/sign_in?a=b", 303)
    assert second["form"] == {
        "authenticity_token": "{{authenticity_token}}",
        "user[email]": "${env:LOGIN_NAME}",
        "user[password]": "${env:LOGIN_PASSWORD}",
        "commit": "Log in",
    }


@pytest.mark.parametrize(
    "page",
    [
        "",
        "<form method=post><input name=q></form>",
        "<form><input type=password name=p></form>",
        "<input type=password name=p>",
        "<form method=post><input type=password name=a><input type=password name=b></form>",
    ],
)
def test_other_forms_are_no_logins(page: str) -> None:
    assert login_by_form(page.encode(), "/", FoundApp("x")) is None


@given(st.binary(), st.text())
def test_any_page_is_read_without_a_fault(page: bytes, name: str) -> None:
    login_by_form(page, "/", FoundApp("x"))
    form = f'<form method=post><input type=password name="p"><input name="{name}"></form>'
    if found := login_by_form(form.encode(errors="replace"), "/", FoundApp("x")):
        assert tomllib.loads(project_text(FoundApp("x"), {}, found))


JSON = {
    "express": (
        {
            "x.js": "app.post('/api/login', async (q, r) => {\n"
            " const { email, password } = q.body\n"
            " const token = jwt.sign({})\n r.json({ accessToken: token })\n})"
        },
        ("/api/login", {"email", "password"}, "$.accessToken"),
    ),
    "flask": (
        {
            "x.py": '@app.post("/tokens")\n@app.post("/login")\ndef login():\n'
            '    user = find(request.json["username"], request.json["password"])\n'
            '    return {"access_token": make(user)}\n'
        },
        ("/login", {"username", "password"}, "$.access_token"),
    ),
    "whose function is elsewhere": (
        {"x.js": "router.post('/api/auth', users.enter)"},
        ("/api/auth", {"username", "password"}, "$.token"),
    ),
}


@pytest.mark.parametrize("name", JSON)
def test_a_route_that_gives_tokens_is_guessed(tmp_path: Path, name: str) -> None:
    files, (path, keys, token) = JSON[name]
    folder = laid_out(tmp_path, files)
    found = login_by_json(routes_of_sources(folder), folder)
    assert found
    (step,) = found.steps
    assert (step["path"], set(step["json"])) == (path, keys)
    assert step["capture"] == {"token": {"json": token}}
    assert found.headers == {"Authorization": "Bearer {{token}}"}


def test_the_form_of_oauth_is_sent_as_one(tmp_path: Path) -> None:
    route = (
        '@app.post("/auth/token")\n'
        "async def token(form: Annotated[OAuth2PasswordRequestForm, x]):\n"
        "    where(User.email == form.username, form.password)\n    return {'access_token': 1}\n"
    )
    folder = laid_out(tmp_path, {"app.py": route})
    found = login_by_json(routes_of_sources(folder), folder)
    assert found
    (step,) = found.steps
    assert step["form"] == {
        "username": "${env:LOGIN_NAME}",
        "password": "${env:LOGIN_PASSWORD}",
    }
    assert "json" not in step
    assert step["capture"] == {"token": {"json": "$.access_token"}}


def test_without_such_a_route_there_is_none(tmp_path: Path) -> None:
    folder = laid_out(tmp_path, {"x.js": "app.post('/orders', f); app.get('/login', g)"})
    assert login_by_json(routes_of_sources(folder), folder) is None


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        *((it, True) for it in ("/login", "/accounts/login/", "/users/sign_in", "/wp-login.php")),
        *((it, False) for it in ("/authors", "/blog/in", "/", "/accounting", "/logins-report")),
    ],
)
def test_pages_for_logging_in_are_known_by_their_paths(path: str, is_one: bool) -> None:
    assert is_login(path) is is_one


def test_what_signs_sessions_gets_a_value(tmp_path: Path) -> None:
    text = "jwt.sign({}, process.env.JWT_SECRET); stripe(process.env.STRIPE_SECRET_KEY); PORT\n"
    laid_out(tmp_path, {"package.json": {"scripts": {"start": "node x.js"}}, "x.js": text})
    found = find_app(tmp_path)
    assert found
    assert set(found.environment) == {"JWT_SECRET"}
    assert "its sources read JWT_SECRET: a value for measuring is given" in found.notes


FORM = b"<form method=post action=/login><input name=user><input type=password name=pw></form>"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ('return RedirectResponse("/", status_code=303)', 303),
        ("return RedirectResponse('/', status_code=status.HTTP_302_FOUND)", 302),
        ("return RedirectResponse('/')", 307),
        ('return Redirect::to("/")', 303),
        ('http.Redirect(w, r, "/", http.StatusSeeOther)', 303),
        ("return redirect('/')", 302),
    ],
)
def test_the_status_behind_a_form_is_that_of_its_sources(
    tmp_path: Path, answer: str, status: int
) -> None:
    folder = laid_out(tmp_path, {"x.py": f'@app.post("/login")\ndef enter():\n    {answer}\n'})
    found = login_by_form(FORM, "/login", FoundApp("x"), folder)
    assert found
    assert found.steps[0]["status"] == status


def test_a_route_that_reads_a_form_and_leads_on_is_no_json(tmp_path: Path) -> None:
    text = (
        '@app.post("/login")\ndef enter(username: str = Form(), password: str = Form()):\n'
        '    response = RedirectResponse("/", status_code=303)\n'
        '    response.set_cookie("sid", sid)\n'
    )
    folder = laid_out(tmp_path, {"x.py": text})
    found = login_by_json(routes_of_sources(folder), folder)
    assert found
    (step,) = found.steps
    assert set(step["form"]) == {"username", "password"}
    assert step["status"] == 303
    assert "capture" not in step
    assert not found.headers


OPENAPI = {
    "openapi": "3.1.0",
    "paths": {
        "/users": {"post": {"requestBody": {"content": {}}}},
        "/auth/login": {
            "post": {
                "requestBody": {
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {"$ref": "#/components/schemas/Body"}
                        }
                    }
                },
                "responses": {
                    "200": {
                        "content": {
                            "application/json": {
                                "schema": {"properties": {"access_token": {"type": "string"}}}
                            }
                        }
                    }
                },
            }
        },
    },
    "components": {"schemas": {"Body": {"properties": {"username": {}, "password": {}}}}},
}


def test_a_login_is_read_from_openapi() -> None:
    found = login_by_openapi(json.dumps(OPENAPI))
    assert found
    (step,) = found.steps
    assert (step["path"], set(step["form"])) == ("/auth/login", {"username", "password"})
    assert step["capture"] == {"token": {"json": "$.access_token"}}
    assert found.headers == {"Authorization": "Bearer {{token}}"}
    assert not found.doubt


@pytest.mark.parametrize("text", ["", "[]", "{", '{"paths": {"/login": {"post": {}}}}'])
def test_other_documents_have_no_login(text: str) -> None:
    assert login_by_openapi(text) is None
