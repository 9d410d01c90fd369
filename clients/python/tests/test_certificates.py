"""Certificates by argument, by variable, in each form; files that cannot be used."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import re
import ssl
import subprocess

import grpc
import pytest

from polar_mesh import Client, aio
from polar_mesh.certificates import Security, security

NOTHING = Security(None, None)
SECURITY = pathlib.Path(__file__).parents[3] / "docs" / "security.md"
#: The commands that make an authority, and what it signs.
DOCUMENTED = re.search(r"```sh\n(.*?)```", SECURITY.read_text(), re.DOTALL)[1]
HTTPS = ["http://127.0.0.1:1", "https://127.0.0.1:2"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("POLAR_CA_FILE", "POLAR_CERT_FILE", "POLAR_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_files_become_what_grpc_and_what_python_takes(pair):
    made = security(HTTPS, NOTHING, pair[0], *pair)()
    assert isinstance(made.credentials, grpc.ChannelCredentials)
    assert [one["subject"] for one in made.tls.get_ca_certs()] == [((("commonName", "a"),),)]
    assert security(["HTTPS://a"], NOTHING, pair[0], *pair)().tls is not None
    assert security(HTTPS, NOTHING, None, None, None)() == NOTHING


def test_variables_stand_in_for_arguments(pair, monkeypatch):
    monkeypatch.setenv("POLAR_CA_FILE", str(pair[0]))
    assert security(HTTPS, NOTHING, None, None, None)().tls.get_ca_certs() != []
    monkeypatch.setenv("POLAR_CA_FILE", "/nowhere")
    assert security(HTTPS, NOTHING, pair[0], None, None)().tls.get_ca_certs() != []
    with pytest.raises(ValueError, match=r"ca \(POLAR_CA_FILE\): /nowhere cannot be read"):
        security(HTTPS, NOTHING, None, None, None)()


def test_what_is_given_goes_first(pair):
    credentials, context = grpc.ssl_channel_credentials(), ssl.create_default_context()
    assert security(HTTPS, Security(credentials, context), pair[0], *pair)() == (credentials, context)


def test_what_is_given_is_not_mixed_with_variables(pair, monkeypatch):
    credentials, context = grpc.ssl_channel_credentials(), ssl.create_default_context()
    monkeypatch.setenv("POLAR_CA_FILE", str(pair[0]))
    assert security(HTTPS, Security(credentials, None), None, None, None)() == (credentials, None)
    assert security(HTTPS, Security(credentials, None), pair[0], None, None)().tls.get_ca_certs() != []
    monkeypatch.setenv("POLAR_CA_FILE", "/nowhere")
    for given in (Security(credentials, None), Security(credentials, context)):
        assert security(HTTPS, given, None, None, None)() == given


def test_an_empty_variable_is_none(pair, monkeypatch):
    for name in ("POLAR_CA_FILE", "POLAR_CERT_FILE", "POLAR_KEY_FILE"):
        monkeypatch.setenv(name, "")
    assert security(HTTPS, NOTHING, None, None, None)() == NOTHING
    assert security(HTTPS, NOTHING, pair[0], None, None)().tls.get_ca_certs() != []


def test_no_file_is_looked_at_without_https():
    assert security(["http://127.0.0.1:1"], NOTHING, "/nowhere", None, None)() == NOTHING


def shaken(client: ssl.SSLContext, certificate, key) -> str:
    """The protocol that a server with this certificate and this client come to."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    far = context.wrap_bio(up, down, server_side=True)
    near = client.wrap_bio(down, up, server_hostname="127.0.0.1")
    for end in (near, far, near, far):
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    return near.version()


@pytest.fixture
def strict(monkeypatch):
    """Python's defaults from 3.13 on."""
    made = ssl.create_default_context

    def create(*args, **options):
        context = made(*args, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", create)
    return create


def test_the_documented_certificates_are_good_for_any_client(strict, tmp_path):
    _sign(tmp_path, DOCUMENTED)
    assert shaken(strict(cafile=tmp_path / "ca.pem"), tmp_path / "mesh.pem", tmp_path / "mesh.key")


def test_an_authority_that_calls_trust_is_trusted_by_the_stream(strict, tmp_path):
    """Without what Python has wanted since 3.13."""
    _sign(tmp_path, re.sub(r"-addext \S+|authorityKeyIdentifier=\S+", "", DOCUMENTED))
    made = security(HTTPS, NOTHING, tmp_path / "ca.pem", None, None)()
    assert shaken(made.tls, tmp_path / "mesh.pem", tmp_path / "mesh.key")


def _sign(folder, commands: str) -> None:
    subprocess.run(["sh", "-euc", commands], cwd=folder, check=True, capture_output=True)


def aio_client(*args, **options):
    async def made() -> None:
        aio.Client(*args, **options)

    asyncio.run(made())


@pytest.mark.parametrize("kind", [Client, aio_client])
def test_a_client_is_not_made_with_files_that_cannot_be_used(kind, pair, tmp_path):
    certificate, key = pair
    text = tmp_path / "text.pem"
    text.write_text("hello")
    with pytest.raises(ValueError, match="cert and key come together"):
        kind(*HTTPS, cert=certificate)
    with pytest.raises(ValueError, match=r"ca \(POLAR_CA_FILE\): .*text\.pem"):
        kind(*HTTPS, ca=text)
    with pytest.raises(ValueError, match=r"cert and key: .*text\.pem"):
        kind(*HTTPS, cert=text, key=key)
