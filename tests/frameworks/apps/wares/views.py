"""The course as Django's views, and a page with a form."""

import course
from django import forms
from django.http import (
    FileResponse,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
    StreamingHttpResponse,
)
from django.shortcuts import redirect
from django.template import engines
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from wares.models import Ware


@require_GET
def hello(request):
    return HttpResponse(course.HELLO, content_type="text/plain")


async def async_hello(request):
    if request.method != "GET" and request.method != "HEAD":
        return HttpResponse(status=405, headers={"Allow": "GET"})
    assert await Ware.objects.acount() >= 0
    return HttpResponse(course.HELLO, content_type="text/plain")


def greet(request, name):
    return JsonResponse({"name": name, "times": int(request.GET.get("times", 1))})


def show(request):
    return JsonResponse(
        {
            "method": request.method,
            "url": request.build_absolute_uri(),
            "path_info": request.path_info,
            "client": request.META["REMOTE_ADDR"],
            "query": request.META["QUERY_STRING"],
            "fields": {name: request.headers.get(name) for name in course.SHOWN},
        }
    )


@csrf_exempt
@require_POST
def echo(request):
    return HttpResponse(request.body, content_type="application/octet-stream")


@csrf_exempt
def form(request):
    return JsonResponse(request.POST.dict())


@csrf_exempt
def upload(request):
    file = request.FILES["file"]
    return JsonResponse(
        course.described(request.POST["title"], file.name, file.content_type, file.read())
    )


def stream(request):
    return StreamingHttpResponse(course.pieces(), content_type="text/plain")


async def async_stream(request):
    return StreamingHttpResponse(course.async_pieces(), content_type="text/plain")


def endless(request):
    return StreamingHttpResponse(course.endless(), content_type="text/plain")


async def async_endless(request):
    return StreamingHttpResponse(course.async_endless(), content_type="text/plain")


def fail_later(request):
    return StreamingHttpResponse(course.fail_later(), content_type="text/plain")


async def async_fail_later(request):
    return StreamingHttpResponse(course.async_fail_later(), content_type="text/plain")


def left(request):
    return JsonResponse(course.left, safe=False)


def fail(request):
    raise course.Mistake("now")


def cookies(request):
    response = HttpResponse("crumbs", content_type="text/plain")
    response.set_cookie("one", "1", httponly=True)
    response.set_cookie("two", "2")
    return response


def redirected(request):
    return HttpResponseRedirect("/hello")


def nothing(request):
    return HttpResponse(status=204)


def file(request):
    return FileResponse(open(course.FILE, "rb"), content_type="application/octet-stream")


def count(request):
    request.session["count"] = request.session.get("count", 0) + 1
    return JsonResponse(request.session["count"], safe=False)


class WareForm(forms.ModelForm):
    class Meta:
        model = Ware
        fields = ("name", "price", "picture")


PAGE = """<!doctype html><title>Wares</title>
<form method="post" enctype="multipart/form-data">{% csrf_token %}{{ form }}
<button id="add">Add</button></form><ul>{% for ware in wares %}
<li>{{ ware.name }}: {{ ware.price }} {{ ware.picture.size|default:0 }}</li>{% endfor %}</ul>
"""


def wares(request):
    """A form that comes back with what is wrong, or leads to the list."""
    form = WareForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        form.save()
        return redirect("/wares/")
    listed = [
        {"name": ware.name, "price": ware.price, "picture": ware.picture or None}
        for ware in Ware.objects.order_by("id")
    ]
    page = engines["django"].from_string(PAGE)
    return HttpResponse(page.render({"form": form, "wares": listed}, request))
