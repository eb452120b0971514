"""Settings of a site without sessions, log-in or forms."""

import os
import secrets
from pathlib import Path

DEBUG = False
SECRET_KEY = secrets.token_hex()  # signs nothing here
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "django_app.urls"
INSTALLED_APPS = ["django_app"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]  # sets Content-Length
APPEND_SLASH = False
USE_I18N = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent.parent / "templates"],
    }
]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
if "DATABASE_URL" in os.environ:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ["PGHOST"],
            "PORT": os.environ["PGPORT"],
            "USER": os.environ["PGUSER"],
            "PASSWORD": os.environ["PGPASSWORD"],
            "NAME": os.environ["PGDATABASE"],
            # Each worker keeps its connection:
            # https://docs.djangoproject.com/en/5.2/ref/databases/#persistent-connections
            "CONN_MAX_AGE": None,
        }
    }
