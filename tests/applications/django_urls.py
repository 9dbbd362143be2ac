"""Views of a Django project that wait for each other."""

# pyright: basic

import threading

from django.http import HttpResponse
from django.urls import path

entered, allowed = threading.Event(), threading.Event()


def wait(request):
    entered.set()
    return HttpResponse(str(allowed.wait(20)).encode())


def allow(request):
    entered.wait(20)
    allowed.set()
    return HttpResponse(threading.current_thread().name.encode())


urlpatterns = [path("wait", wait), path("allow", allow)]
