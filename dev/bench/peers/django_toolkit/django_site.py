"""django-oauth-toolkit over one SQLite file: refresh, and a protected resource.

DATABASE=/path/to.db TOKENS=1000 OUT=tokens.json python django_site.py creates the tables and tokens; gunicorn serves
`django_site:application`. It has no middleware and does not hash the client secret: both would only slow it down.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path

settings.configure(
    SECRET_KEY="a key that nobody needs to guess",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    USE_TZ=True,
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.environ["DATABASE"],
            "CONN_MAX_AGE": None,
            "OPTIONS": {"init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"},
        }
    },
    OAUTH2_PROVIDER={"SCOPES": {"profile": "who you are"}, "ROTATE_REFRESH_TOKEN": True},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    LOGGING_CONFIG=None,
)
django.setup()

from oauth2_provider.decorators import protected_resource  # noqa: E402  # Django is set up first
from oauth2_provider.views import TokenView  # noqa: E402  # as above


@protected_resource(scopes=["profile"])
def me(request: HttpRequest) -> JsonResponse:
    """The userinfo endpoint."""
    user = request.resource_owner
    return JsonResponse(
        {"sub": str(user.pk), "email": user.email, "email_verified": True, "name": user.first_name, "picture": ""}
    )


urlpatterns = [path("token", TokenView.as_view()), path("me", me)]
application = get_wsgi_application()


def fill(count: int) -> dict[str, list[str]]:
    """Creates the tables, a client, and people with tokens."""
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import transaction
    from django.utils import timezone
    from oauth2_provider.models import AccessToken, Application, RefreshToken

    call_command("migrate", verbosity=0)
    client = Application.objects.create(
        client_id="bench",
        client_secret="a-secret-of-32-characters-or-more",
        hash_client_secret=False,
        client_type="confidential",
        authorization_grant_type="authorization-code",
        redirect_uris="https://app.example.com/callback",
        name="Bench",
    )
    made: dict[str, list[str]] = {"access": [], "refresh": []}
    expires = timezone.now() + timedelta(days=1)
    with transaction.atomic():
        for number in range(count):
            user = User.objects.create(
                username=f"ada{number}", email=f"ada{number}@example.com", first_name="Ada Lovelace"
            )
            token, refresh = f"a{number:029d}", f"r{number:029d}"
            access = AccessToken.objects.create(
                user=user, application=client, token=token, scope="profile", expires=expires
            )
            RefreshToken.objects.create(user=user, application=client, token=refresh, access_token=access)
            made["access"].append(token)
            made["refresh"].append(refresh)
    return made


if __name__ == "__main__":
    Path(os.environ["OUT"]).write_text(json.dumps(fill(int(os.environ["TOKENS"]))))
