from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Ware",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("price", models.DecimalField(max_digits=8, decimal_places=2)),
                ("picture", models.FileField(upload_to="pictures", blank=True)),
            ],
        ),
    ]
