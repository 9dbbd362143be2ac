"""What `--acme` and its companions refuse, with the reason."""

from __future__ import annotations

import pytest
from citius.errors import ConfigError
from citius.settings.config import Config

ACME = {"acme": ("a.example",)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"acme": ("*.example.org",)}, r"acme: \*\.example\.org: .*DNS records"),
        ({"acme": ("127.0.0.1",)}, "expected a domain"),
        ({"acme": ("localhost",)}, "expected a domain"),
        ({"acme": ("A.example",)}, "expected a domain in lower case"),
        ({"acme": ("../etc.example",)}, "expected a domain"),
        ({"acme": ("b\u00fccher.example",)}, "xn--"),
        ({"acme": ("a..example",)}, "expected a domain"),
        ({"acme_email": "a@a.example"}, "acme_email is about certificates of acme"),
        ({**ACME, "ssl_dev": True}, "ssl_dev and acme contradict"),
        ({**ACME, "supervisor": False}, "supervisor is off and acme is on"),
        ({**ACME, "reload": True}, "reload and acme contradict"),
        ({**ACME, "acme_staging": True, "acme_directory": "https://a.example"}, "contradict"),
        ({**ACME, "acme_directory": "http://a.example"}, "begins with https://"),
        ({**ACME, "acme_challenge": "http-01"}, "give redirect_http"),
    ],
)
def test_what_cannot_be_fetched(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Config(**options)  # pyright: ignore[reportArgumentType]


def test_the_authority_that_is_asked() -> None:
    assert Config(**ACME).acme_url == "https://acme-v02.api.letsencrypt.org/directory"
    assert "staging" in Config(**ACME, acme_staging=True).acme_url
    assert Config(**ACME, acme_directory="https://a.example/d").acme_url == "https://a.example/d"


def test_kinds_of_challenges() -> None:
    assert Config(**ACME).acme_challenges == ("tls-alpn-01",)
    both = Config(**ACME, redirect_http=("80",))
    assert both.acme_challenges == ("tls-alpn-01", "http-01")
    assert Config(**ACME, bind=("redirect+:80", "tls://:443")).has_redirects
