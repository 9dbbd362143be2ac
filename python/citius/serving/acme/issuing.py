"""An authority, and how it is had to issue a certificate: over certbot's package `acme`.

In: names, and where answers to challenges are put. Out: files of certificates, and when they should be
renewed. ``Refused`` says what the authority said. Only the agent's process imports this.
"""

# The package is an extra, whose types are not all there.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import datetime
import hashlib
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import josepy
import requests
from acme import challenges, client, crypto_util, errors, messages
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from requests.adapters import HTTPAdapter

from citius._core import Tls, __version__, self_signed_certificate
from citius.serving.acme.lines import say

if TYPE_CHECKING:
    from collections.abc import Generator

    from citius.serving.acme.agent import Task
    from citius.serving.acme.store import Store

JOSE: Any = josepy
"""Its names are not among its exported types."""

PATIENCE_S = 120.0
"""How long an authority may take for its checks, and for the certificate."""

TRIES_MAX = 5
"""How often a request is sent again because of its nonce alone."""

RESPONSE_BYTES_MAX = 1024 * 1024
"""Bytes of a response; an authority that sends more is not read on."""

RESPONSE_S_MAX = 60.0
"""How long a response may take, however steadily it comes."""

SAID_CHARACTERS_MAX = 500
"""What of an authority's words goes to the log."""

SHARE_OF_LIFE = 2 / 3
"""Of its time of validity, after which a certificate is renewed, unless its authority says when."""

SHARE_LEFT = 0.1
"""Of its time of validity, which a certificate has left when it is renewed, whatever its authority says."""


class Refused(Exception):
    """What the authority said, or what kept us from hearing it."""


@challenges.ChallengeResponse.register
class TlsAlpn01Response(challenges.KeyAuthorizationChallengeResponse):
    """The package no longer has this challenge."""

    typ = "tls-alpn-01"


@challenges.Challenge.register
class TlsAlpn01(challenges.KeyAuthorizationChallenge):
    """The answer is a certificate (RFC 8737)."""

    response_cls = TlsAlpn01Response
    typ = response_cls.typ

    def validation(self, account_key: Any, **unused_kwargs: Any) -> bytes:
        """The digest in the certificate."""
        return hashlib.sha256(self.key_authorization(account_key).encode()).digest()


class _Bounded(HTTPAdapter):
    """Reads a response as far as one may go, and follows none to elsewhere.

    Raises:
        requests.RequestException: It is longer, takes longer, or leads elsewhere.
    """

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request."""
        response = super().send(*args, **kwargs | {"stream": True})
        until, content = time.monotonic() + RESPONSE_S_MAX, bytearray()
        try:
            for piece in response.raw.stream(16 * 1024, decode_content=True):
                content += piece
                if len(content) > RESPONSE_BYTES_MAX:
                    raise requests.RequestException(
                        f"a response has more than {RESPONSE_BYTES_MAX} bytes"
                    )
                if time.monotonic() > until:
                    raise requests.Timeout(f"a response took more than {RESPONSE_S_MAX:g} s")
        finally:
            response.raw.release_conn()
            response.raw.close()
        response._content, response._content_consumed = bytes(content), True
        if response.is_redirect:
            raise requests.RequestException(
                f"it redirects to {_plain(response.headers['location'])}, which is not followed; "
                "name the authority's own directory"
            )
        return response


class _Network(client.ClientNetwork):
    """Requests that are sent again when their nonce is not accepted (RFC 8555 §6.5)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # No account key and no answer goes over a connection without TLS.
        self.session.adapters.clear()
        self.session.mount("https://", _Bounded())

    def post(self, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request; the package tries twice."""
        for _ in range(TRIES_MAX):
            try:
                return super().post(*args, **kwargs)
            except messages.Error as error:
                if error.code != "badNonce":
                    raise
        return super().post(*args, **kwargs)


class Authority:
    """The authority of a task, with an account.

    Raises:
        Refused: It cannot be reached, or gives no account.
    """

    def __init__(self, task: Task, store: Store) -> None:
        self._task = task
        self._store = store
        number = hashlib.sha256(task.directory.encode()).hexdigest()[:16]
        self._key_file = store.accounts / f"account-{number}.pem"
        self._key = JOSE.JWKEC(key=self._account_key())
        self._net = _Network(
            self._key,
            alg=JOSE.ES256,
            user_agent=f"citius/{__version__}",
            verify_ssl=task.ca_certs or True,  # pyright: ignore[reportArgumentType]
            timeout=30,
        )
        with _refusals(f"cannot use {task.directory}"):
            directory = client.ClientV2.get_directory(task.directory, self._net)
            self._client = client.ClientV2(directory, self._net)
            self._register(directory)

    def _account_key(self) -> ec.EllipticCurvePrivateKey:
        if self._key_file.exists():
            try:
                found = serialization.load_pem_private_key(self._key_file.read_bytes(), None)
            except (ValueError, TypeError, UnsupportedAlgorithm):  # cut off, or another file
                found = None
            if not isinstance(found, ec.EllipticCurvePrivateKey):
                raise Refused(f"{self._key_file} is no key of an account; remove it for a new one")
            return found
        made = ec.generate_private_key(ec.SECP256R1())
        self._store.write(str(self._key_file), _pem(made), 0o600, shared=False)
        return made

    def _register(self, directory: messages.Directory) -> None:
        """Have an account, whose terms of service ``--acme`` agrees to."""
        wanted = messages.NewRegistration.from_data(
            email=self._task.email,
            terms_of_service_agreed=True,
            external_account_binding=self._bound(directory),
        )
        try:
            self._client.new_account(wanted)
        except errors.ConflictError as known:
            account = messages.RegistrationResource(
                uri=known.location, body=messages.Registration()
            )
            self._net.account = account
            return
        terms = getattr(directory.meta, "terms_of_service", None)
        agreed = f", whose terms of service are agreed to: {terms}" if terms else ""
        say("info", f"acme: a new account with {self._task.directory}{agreed}")

    def _bound(self, directory: messages.Directory) -> dict[str, Any] | None:
        """The account at the authority that this one is to be bound to (RFC 8555 §7.3.4)."""
        if self._task.binding is not None:
            return messages.ExternalAccountBinding.from_data(
                self._key.public_key(), *self._task.binding, directory
            )
        if getattr(directory.meta, "external_account_required", False):
            raise Refused(
                "the authority wants accounts to be bound to one that it knows; give acme_eab"
            )
        return None

    def renew_at(self, name: str) -> float | None:
        """When the authority wants the certificate of a name to be renewed; ``None``: it does not say.

        Raises:
            Refused: The certificate cannot be used.
            OSError: The certificate cannot be read.
        """
        with open(self._store.certificate(name), "rb") as file:
            chain = _certificates(file.read())
        begin, end = _checked(chain, name)
        try:
            when, _ = self._client.renewal_time(chain)
            asked_at = None if when is None else when.timestamp()
        except Exception:  # the package trusts the response, as in `_refusals`
            return None
        # What the authority says is of no use when the certificate has expired.
        return None if asked_at is None else min(asked_at, end - SHARE_LEFT * (end - begin))

    def issue(self, name: str) -> float:
        """Have a certificate for a name, and put it in its place; returns when it should be renewed.

        Raises:
            Refused: By no kind of challenge.
            OSError: A file cannot be written.
        """
        reasons: list[str] = []
        for kind in self._task.challenges:
            try:
                return self._issue_by(name, kind)
            except Refused as error:
                reasons.append(f"{kind}: {error}")
        raise Refused("; ".join(reasons))

    def _issue_by(self, name: str, kind: str) -> float:
        key = _pem(ec.generate_private_key(ec.SECP256R1()))
        with _refusals("no certificate"):
            order = self._client.new_order(crypto_util.make_csr(key, [name]))
            deadline = datetime.datetime.now() + datetime.timedelta(seconds=PATIENCE_S)
            with self._answers(order, name, kind):
                order = self._client.poll_authorizations(order, deadline)
            order = self._client.finalize_order(order, deadline)
        chain = str(order.fullchain_pem).encode()
        path = self._store.certificate(name)
        begin, end = _checked(chain, name)
        self._store.write(f"{path}.issued", key + chain, 0o600)
        try:
            Tls([(f"{path}.issued", f"{path}.issued")])
        except ValueError as error:
            os.unlink(f"{path}.issued")
            raise Refused(f"what it has issued cannot be used: {error}") from None
        os.rename(f"{path}.issued", path)
        now = time.time()
        # One that is issued with its time nearly over serves for a share of what is left.
        return max(begin + SHARE_OF_LIFE * (end - begin), now + (1 - SHARE_OF_LIFE) * (end - now))

    @contextmanager
    def _answers(self, order: Any, name: str, kind: str) -> Generator[None]:
        """Have the answers to an order's challenges in their files, until the end."""
        written: list[str] = []
        try:
            for authorization in order.authorizations:
                if authorization.body.status == messages.STATUS_VALID:
                    continue
                offered = [one for one in authorization.body.challenges if one.chall.typ == kind]
                if not offered:
                    kinds = ", ".join(one.chall.typ for one in authorization.body.challenges)
                    raise Refused(f"the authority offers only {kinds}")
                response, validation = offered[0].chall.response_and_validation(self._key)
                if kind == TlsAlpn01.typ:
                    path = os.path.join(self._store.challenges, f"{name}.pem")
                    content, mode = self_signed_certificate(name, validation).encode(), 0o600
                else:
                    token = offered[0].chall.encode("token")
                    path = os.path.join(self._store.http, token)
                    content, mode = validation.encode(), 0o644
                written.append(path)
                self._store.write(path, content, mode)
                self._client.answer_challenge(offered[0], response)
            yield
        finally:
            for path in written:
                with suppress(FileNotFoundError):
                    os.unlink(path)


@contextmanager
def _refusals(what: str) -> Generator[None]:
    """Turn what the package raises into ``Refused``, with the authority's words."""
    try:
        yield
    except errors.ValidationError as error:
        raise Refused(f"{what}: {_failed(error)}") from None
    except messages.Error as error:
        raise Refused(f"{what}: {_said(error)}") from None
    except errors.IssuanceError as error:
        raise Refused(f"{what}: {_said(error.error)}") from None
    except errors.TimeoutError:
        raise Refused(f"{what}: the authority was not done after {PATIENCE_S:g} s") from None
    except (errors.Error, requests.RequestException) as error:
        raise Refused(f"{what}: {_plain(str(error)) or type(error).__name__}") from None
    except (Refused, OSError):
        raise
    except Exception as error:  # the package trusts that members are there, and of their types
        words = _plain(f"{type(error).__name__}: {error}")
        raise Refused(f"{what}: the authority's response is not that of ACME ({words})") from None


def _checked(chain: bytes, name: str) -> tuple[float, float]:
    """From when until when a certificate is valid.

    Raises:
        Refused: It is for another name, or not valid any more.
    """
    try:
        own = x509.load_pem_x509_certificate(chain)
        found = own.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = [one.lower() for one in found.value.get_values_for_type(x509.DNSName)]
        begin, end = own.not_valid_before_utc.timestamp(), own.not_valid_after_utc.timestamp()
    except Exception as error:  # what is wrong with extensions has types of its own
        raise Refused(f"what it has issued cannot be used: {_plain(str(error))}") from None
    if name not in names:
        said = _plain(", ".join(names)) or "no name"
        raise Refused(f"what it has issued cannot be used: it is for {said}, not for {name}")
    if end <= time.time():
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(end))
        raise Refused(
            f"what it has issued cannot be used: by the clock of this machine it has expired ({when} UTC)"
        )
    return begin, end


def is_issued(path: str, name: str) -> bool:
    """Whether a file has a certificate of an authority for a name, with its key, that is still valid.

    It has not after a loss: the server has then signed one itself, or there is none.
    """
    try:
        Tls([(path, path)])
        with open(path, "rb") as file:
            chain = _certificates(file.read())
        _checked(chain, name)
        own = x509.load_pem_x509_certificate(chain)
    except (OSError, ValueError, Refused):
        return False
    return own.issuer != own.subject


def _failed(error: Any) -> str:
    said = [
        _said(one.error)
        for authorization in error.failed_authzrs
        for one in authorization.body.challenges
        if one.error is not None
    ]
    return "; ".join(said) or "the authority gives no reason"


def _said(error: Any) -> str:
    parts = [error.code or error.typ, error.detail or error.description]
    parts += [sub.detail for sub in error.subproblems or () if sub.detail]
    return _plain(": ".join(part for part in parts if part))


def _plain(text: str) -> str:
    """Words of an authority, for a line of the log."""
    shown = "".join(one if one.isprintable() else " " for one in text[: SAID_CHARACTERS_MAX + 1])
    return shown if len(shown) <= SAID_CHARACTERS_MAX else f"{shown[:SAID_CHARACTERS_MAX]}…"


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _certificates(pem: bytes) -> bytes:
    """Without the key before them."""
    return pem[pem.index(b"-----BEGIN CERTIFICATE-----") :]
