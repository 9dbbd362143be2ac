"""A hello on Django, with the middleware of a new project that needs no database."""

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="-",
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ],
)


def hello(request):
    return HttpResponse("Welcome!\n", content_type="text/plain")


urlpatterns = [path("", hello)]
app = get_wsgi_application()
