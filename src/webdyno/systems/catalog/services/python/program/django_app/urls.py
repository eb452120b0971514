"""Which view answers what."""

from django.urls import path

from django_app import views

handler404 = "django_app.views.not_found"
urlpatterns = [
    path("plaintext", views.plaintext),
    path("json", views.json_message),
    path("db", views.db),
    path("queries", views.queries),
    path("updates", views.updates),
    path("fortunes", views.fortunes),
    path("items", views.Items.as_view()),
    path("items/<int:item_id>", views.OneItem.as_view()),
    path("upload", views.upload),
]
