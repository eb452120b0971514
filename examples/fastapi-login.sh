#!/bin/sh
# FastAPI with a login and PostgreSQL: a Git repository of three revisions, in FOLDER or
# ./fastapi-login-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" fastapi-login-app

mkdir -p app/templates alembic/versions
cat >requirements.txt <<'EOF'
alembic==1.17.2
bcrypt==5.0.0
fastapi==0.121.0
itsdangerous==2.2.0
jinja2==3.1.6
psycopg[binary]==3.2.12
pydantic-settings==2.11.0
python-multipart==0.0.20
sqlalchemy==2.0.44
uvicorn==0.38.0
EOF
cat >.env.example <<'EOF'
DATABASE_URL=postgresql+psycopg://tickets:tickets@localhost:5432/tickets
SESSION_KEY=change-me
EOF
touch app/__init__.py
cat >app/settings.py <<'EOF'
from pydantic import PostgresDsn, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_file=".env", extra="ignore")

    database_url: PostgresDsn
    session_key: SecretStr
    page_size: int = 50


settings = Settings()
EOF
cat >app/database.py <<'EOF'
from collections.abc import Iterator

from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from app.settings import settings

ADDRESS = str(settings.database_url).replace("postgresql://", "postgresql+psycopg://", 1)
engine = create_engine(ADDRESS, pool_size=8)


def session() -> Iterator[Session]:
    with Session(engine) as opened:
        yield opened
EOF
cat >app/models.py <<'EOF'
from sqlalchemy import ForeignKey
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class Agent(Base):
    __tablename__ = "agent"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    password: Mapped[bytes]


class Customer(Base):
    __tablename__ = "customer"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Ticket(Base):
    __tablename__ = "ticket"

    id: Mapped[int] = mapped_column(primary_key=True)
    subject: Mapped[str]
    customer_id: Mapped[int] = mapped_column(ForeignKey("customer.id"))
    customer: Mapped[Customer] = relationship()
EOF
cat >app/main.py <<'EOF'
"""Tickets of a help desk, behind a login."""

from pathlib import Path
from typing import Annotated

import bcrypt
from fastapi import Depends, FastAPI, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.templating import Jinja2Templates
from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload
from starlette.middleware.sessions import SessionMiddleware

from app.database import session
from app.models import Agent, Ticket
from app.settings import settings

app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key=settings.session_key.get_secret_value())
templates = Jinja2Templates(Path(__file__).parent / "templates")
Database = Annotated[Session, Depends(session)]


def signed_in(request: Request) -> int:
    if "agent" not in request.session:
        raise HTTPException(302, headers={"Location": "/login"})
    return request.session["agent"]


@app.get("/health")
def health() -> dict[str, str]:
    return {"status": "ok"}


@app.get("/login", response_class=HTMLResponse)
def login_page(request: Request):
    return templates.TemplateResponse(request, "login.html")


@app.post("/login")
def login(
    request: Request,
    database: Database,
    email: Annotated[str, Form()],
    password: Annotated[str, Form()],
):
    agent = database.scalar(select(Agent).where(Agent.email == email))
    if agent is None or not bcrypt.checkpw(password.encode(), agent.password):
        return templates.TemplateResponse(request, "login.html", {"wrong": True}, status_code=401)
    request.session["agent"] = agent.id
    return RedirectResponse("/tickets", status_code=303)


@app.get("/tickets", response_class=HTMLResponse, dependencies=[Depends(signed_in)])
def tickets(request: Request, database: Database):
    newest = select(Ticket).order_by(Ticket.id.desc()).limit(settings.page_size)
    found = database.scalars(newest.options(joinedload(Ticket.customer))).all()
    return templates.TemplateResponse(request, "tickets.html", {"tickets": found})
EOF
cat >app/templates/login.html <<'EOF'
<!doctype html>
<title>Help desk</title>
{% if wrong %}<p>Wrong address or password</p>{% endif %}
<form method="post" action="/login">
  <input type="email" name="email" required>
  <input type="password" name="password" required>
  <button>Log in</button>
</form>
EOF
cat >app/templates/tickets.html <<'EOF'
<!doctype html>
<title>Tickets</title>
<ul>
{% for ticket in tickets %}
  <li>{{ ticket.subject }}, {{ ticket.customer.name }}</li>
{% endfor %}
</ul>
EOF
cat >alembic.ini <<'EOF'
[alembic]
script_location = alembic
prepend_sys_path = .
EOF
cat >alembic/env.py <<'EOF'
from alembic import context

from app.database import engine
from app.models import Base

with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata)
    with context.begin_transaction():
        context.run_migrations()
EOF
cat >alembic/versions/0001_tickets.py <<'EOF'
import sqlalchemy as sa

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "agent",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("email", sa.String, nullable=False, unique=True),
        sa.Column("password", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "customer",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
    )
    op.create_table(
        "ticket",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("customer_id", sa.Integer, sa.ForeignKey("customer.id"), nullable=False),
    )


def downgrade() -> None:
    for table in ("ticket", "customer", "agent"):
        op.drop_table(table)
EOF
cat >app/seed.py <<'EOF'
"""The agent ann@example.org, whose password is pages, and some tickets: python -m app.seed."""

import bcrypt
from sqlalchemy.orm import Session

from app.database import engine
from app.models import Agent, Customer, Ticket


def main() -> None:
    with Session(engine) as database:
        password = bcrypt.hashpw(b"pages", bcrypt.gensalt(8))
        database.add(Agent(email="ann@example.org", password=password))
        for number in range(50):
            customer = Customer(name=f"Customer {number}")
            database.add(Ticket(subject=f"Ticket {number}", customer=customer))
        database.commit()


if __name__ == "__main__":
    main()
EOF
printf '%s\n' .venv/ __pycache__/ .env >.gitignore
echo "Tickets, behind a login: python -m app.seed makes ann@example.org, whose password is pages." >README.md
revision start "A help desk"
documented "Tickets are shown fifty at a time."

sed -i -e 's/\.options(joinedload(Ticket.customer))//' -e 's/, joinedload$//' app/main.py
revision slower "Tickets: a simpler query"
ready "the list of tickets asks for each customer by itself"
