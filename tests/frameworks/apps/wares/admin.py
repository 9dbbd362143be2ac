from django.contrib import admin

from wares.models import Ware


@admin.register(Ware)
class WareAdmin(admin.ModelAdmin):
    list_display = ("name", "price")
    search_fields = ("name",)
