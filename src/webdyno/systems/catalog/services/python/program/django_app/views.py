"""All sites in Django, with its models."""

import hashlib
import json
import random

from django.db import transaction
from django.forms.models import model_to_dict
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.cache import get_conditional_response
from django.views import View
from django.views.decorators.http import require_GET, require_POST

from django_app.models import Fortune, Item, World
from rules import HIGHEST, fault_of, whole

PAGE = 20


def not_found(request, exception=None):
    return JsonResponse({"error": "not found"}, status=404)


@require_GET
def plaintext(request):
    return HttpResponse("Hello, World!", content_type="text/plain")


@require_GET
def json_message(request):
    return JsonResponse({"message": "Hello, World!"})


@require_GET
def db(request):
    return JsonResponse(shown(World.objects.get(id=random.randint(1, 10_000))))


@require_GET
def queries(request):
    count = whole(request.GET.get("queries"), 500)
    worlds = [World.objects.get(id=random.randint(1, 10_000)) for _ in range(count)]
    return JsonResponse([shown(world) for world in worlds], safe=False)


@require_GET
def updates(request):
    count = whole(request.GET.get("queries"), 500)
    # In the order of their ids, so that two requests never wait for each other.
    ids = sorted(random.sample(range(1, 10_001), count))
    worlds = [World.objects.get(id=id_) for id_ in ids]
    with transaction.atomic():
        for world in worlds:
            world.randomnumber = random.randint(1, 10_000)
            world.save(update_fields=["randomnumber"])
    return JsonResponse([shown(world) for world in worlds], safe=False)


def shown(world):
    return {"id": world.id, "randomNumber": world.randomnumber}


@require_GET
def fortunes(request):
    found = list(Fortune.objects.all())
    found.append(Fortune(id=0, message="Additional fortune added at request time."))
    found.sort(key=lambda fortune: fortune.message)
    return render(request, "fortunes.html", {"fortunes": found})


class Items(View):
    def get(self, request):
        page = whole(request.GET.get("page"), HIGHEST)
        total = Item.objects.count()
        first = (page - 1) * PAGE
        found = Item.objects.order_by("id").values("id", "name", "price", "version")
        return JsonResponse(
            {
                "page": page,
                "pages": -(-total // PAGE),
                "total": total,
                "items": list(found[first : first + PAGE]),
            }
        )

    def post(self, request):
        new, fault = sent_item(request)
        if fault:
            return JsonResponse({"error": fault}, status=400)
        item = Item.objects.create(name=new["name"], price=new["price"])
        return JsonResponse(
            model_to_dict(item), status=201, headers={"Location": f"/items/{item.id}"}
        )


class OneItem(View):
    def get(self, request, item_id):
        item = Item.objects.filter(id=item_id).first()
        if item is None:
            return not_found(request)
        tag = f'"{item.version}"'
        response = JsonResponse(model_to_dict(item), headers={"ETag": tag})
        return get_conditional_response(request, etag=tag, response=response)

    def put(self, request, item_id):
        new, fault = sent_item(request)
        if fault:
            return JsonResponse({"error": fault}, status=400)
        with transaction.atomic():
            item = Item.objects.select_for_update().filter(id=item_id).first()
            if item is None:
                return not_found(request)
            item.name, item.price, item.version = new["name"], new["price"], item.version + 1
            item.save()
        return JsonResponse(model_to_dict(item))

    def delete(self, request, item_id):
        deleted, _ = Item.objects.filter(id=item_id).delete()
        return HttpResponse(status=204) if deleted else not_found(request)


def sent_item(request):
    """Give the item that a client sent, and what is wrong with it."""
    try:
        new = json.loads(request.body)
    except ValueError:
        return None, "no JSON"
    return new, fault_of(new)


@require_POST
def upload(request):
    digest, size = hashlib.sha256(), 0
    while chunk := request.read(65_536):
        digest.update(chunk)
        size += len(chunk)
    return JsonResponse({"bytes": size, "sha256": digest.hexdigest()})
