#!/bin/sh
# Django with a login and PostgreSQL: a Git repository of three revisions, in FOLDER or ./django-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" django-app

mkdir -p config books/management/commands books/migrations books/templates/books \
    books/templates/registration
touch config/__init__.py books/__init__.py books/migrations/__init__.py \
    books/management/__init__.py books/management/commands/__init__.py

cat >pyproject.toml <<'EOF'
[project]
name = "library"
version = "1.0.0"
requires-python = ">=3.11"
dependencies = ["django==5.2.8", "dj-database-url==3.0.1", "gunicorn==23.0.0", "psycopg[binary]==3.2.12"]
EOF
cat >manage.py <<'EOF'
import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
execute_from_command_line(sys.argv)
EOF
cat >config/settings.py <<'EOF'
import os

import dj_database_url

SECRET_KEY = os.environ["SECRET_KEY"]
DEBUG = os.environ.get("DEBUG", "") == "True"
ALLOWED_HOSTS = os.environ.get("ALLOWED_HOSTS", "").split(",")
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "books",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {"default": dj_database_url.config(conn_max_age=600)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGIN_REDIRECT_URL = "books"
EOF
cat >config/wsgi.py <<'EOF'
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
EOF
cat >config/urls.py <<'EOF'
from django.urls import include, path

from books import views

urlpatterns = [
    path("", views.BookList.as_view(), name="books"),
    path("books/new/", views.BookCreate.as_view(), name="new-book"),
    path("accounts/", include("django.contrib.auth.urls")),
]
EOF
cat >books/models.py <<'EOF'
from django.db import models


class Author(models.Model):
    name = models.CharField(max_length=100)


class Book(models.Model):
    title = models.CharField(max_length=200)
    author = models.ForeignKey(Author, on_delete=models.CASCADE)
EOF
cat >books/migrations/0001_initial.py <<'EOF'
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel(
            "Author",
            [
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
            ],
        ),
        migrations.CreateModel(
            "Book",
            [
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=200)),
                ("author", models.ForeignKey("books.Author", django.db.models.deletion.CASCADE)),
            ],
        ),
    ]
EOF
cat >books/views.py <<'EOF'
from django.contrib.auth.mixins import LoginRequiredMixin
from django.urls import reverse_lazy
from django.views.generic import CreateView, ListView

from books.models import Book


class BookList(LoginRequiredMixin, ListView):
    queryset = Book.objects.select_related("author").order_by("-id")[:50]


class BookCreate(LoginRequiredMixin, CreateView):
    model = Book
    fields = ["title", "author"]
    success_url = reverse_lazy("books")
EOF
cat >books/management/commands/seed.py <<'EOF'
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand

from books.models import Author, Book


class Command(BaseCommand):
    help = "A user, reader with the password pages, and some books."

    def handle(self, *args, **options):
        User.objects.create_user("reader", password="pages")
        for number in range(50):
            author = Author.objects.create(name=f"Author {number}")
            Book.objects.create(title=f"Book {number}", author=author)
EOF
cat >books/templates/base.html <<'EOF'
<!doctype html>
<html lang="en">
<title>Library</title>
{% if user.is_authenticated %}
<form method="post" action="{% url 'logout' %}">{% csrf_token %}
  {{ user.username }} <button>Log out</button>
</form>
{% endif %}
{% block content %}{% endblock %}
</html>
EOF
cat >books/templates/registration/login.html <<'EOF'
{% extends "base.html" %}
{% block content %}
<form method="post">{% csrf_token %}
  {{ form.as_p }}
  <button>Log in</button>
</form>
{% endblock %}
EOF
cat >books/templates/books/book_list.html <<'EOF'
{% extends "base.html" %}
{% block content %}
<h1>Your books</h1>
<ul>{% for book in book_list %}<li>{{ book.title }}, {{ book.author.name }}</li>{% endfor %}</ul>
<a href="{% url 'new-book' %}">Add one</a>
{% endblock %}
EOF
cat >books/templates/books/book_form.html <<'EOF'
{% extends "base.html" %}
{% block content %}
<form method="post">{% csrf_token %}
  {{ form.as_p }}
  <button>Save</button>
</form>
{% endblock %}
EOF
printf '%s\n' .venv/ __pycache__/ >.gitignore
echo "Books, behind a login: manage.py seed makes the user reader, whose password is pages." >README.md
revision start "A library"
documented "Books are shown fifty at a time."

sed -i 's/\.select_related("author")//' books/views.py
revision slower "Books: a simpler query"
ready "the list of books asks for each author by itself"
