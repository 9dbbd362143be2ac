from django.db import models


class Ware(models.Model):
    name = models.CharField(max_length=100)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    picture = models.FileField(upload_to="pictures", blank=True)

    def __str__(self):
        return self.name
