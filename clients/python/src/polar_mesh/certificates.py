"""Certificates of a mesh with TLS: files, in the forms that gRPC and Python's own connections take them."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import grpc

from .channel import split_url

#: A file, in PEM.
File = str | os.PathLike[str] | None

_VARIABLES = {"ca": "POLAR_CA_FILE", "cert": "POLAR_CERT_FILE", "key": "POLAR_KEY_FILE"}


class Security(NamedTuple):
    """What connections to ``https://`` are made with; None for the defaults of gRPC and of Python."""

    credentials: grpc.ChannelCredentials | None
    tls: ssl.SSLContext | None


def security(urls: Iterable[str], given: Security, ca: File, cert: File, key: File) -> Security:
    """What is given, and where that lacks one the same of files, by argument or else by variable.

    Raises ValueError for a file that cannot be used, and for what is no address. Where no URL is ``https://``, none is looked
    at. Variables add nothing to credentials: what they are made of cannot be known, and the stream might trust others than the
    calls.
    """
    if not any(split_url(url).scheme == "https" for url in urls):
        return given
    if all(given) or (given.credentials and not any((ca, cert, key))):
        return given
    known = {"ca": ca, "cert": cert, "key": key}
    files = {name: file or os.environ.get(_VARIABLES[name]) or None for name, file in known.items()}
    if not any(files.values()):
        return given
    context = _context(files)
    read = {name: None if file is None else Path(file).read_bytes() for name, file in files.items()}
    return Security(
        given.credentials or grpc.ssl_channel_credentials(read["ca"], read["key"], read["cert"]),
        given.tls or context,
    )


def _context(files: dict[str, File]) -> ssl.SSLContext:
    if (files["cert"] is None) != (files["key"] is None):
        raise ValueError("cert and key come together: POLAR_CERT_FILE and POLAR_KEY_FILE, or the arguments")
    for name, file in files.items():
        if file is not None and not os.access(file, os.R_OK):
            raise ValueError(f"{name} ({_VARIABLES[name]}): {file} cannot be read")
    try:
        context = ssl.create_default_context(cafile=files["ca"])
        # Python 3.13 refuses authorities and certificates without certain extensions, which gRPC and the mesh take.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"ca ({_VARIABLES['ca']}): {files['ca']}: {error}") from error
    if files["cert"] is not None:
        try:
            context.load_cert_chain(files["cert"], files["key"])
        except (OSError, ssl.SSLError) as error:
            raise ValueError(f"cert and key: {files['cert']} and {files['key']}: {error}") from error
    return context
