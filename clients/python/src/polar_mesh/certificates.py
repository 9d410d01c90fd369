"""Certificates of a mesh with TLS: files, in the forms that gRPC and Python's own connections take them."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import grpc

from .channel import split_url

#: A file, in PEM.
File = str | os.PathLike[str] | None

_log = logging.getLogger("polar_mesh")

_VARIABLES = {"ca": "POLAR_CA_FILE", "cert": "POLAR_CERT_FILE", "key": "POLAR_KEY_FILE"}


class Security(NamedTuple):
    """What connections to ``https://`` are made with; None for the defaults of gRPC and of Python."""

    credentials: grpc.ChannelCredentials | None
    tls: ssl.SSLContext | None


def security(urls: Iterable[str], given: Security, ca: File, cert: File, key: File) -> Callable[[], Security]:
    """What is given, and where that lacks one the same of files, by argument or else by variable; to be asked for each new
    connection, as files are renewed.

    Raises ValueError for a file that cannot be used, and for what is no address. Where no URL is ``https://``, none is looked
    at. Variables add nothing to credentials: what they are made of cannot be known, and the stream might trust others than the
    calls.
    """
    if not any(split_url(url).scheme == "https" for url in urls):
        return lambda: given
    if all(given) or (given.credentials and not any((ca, cert, key))):
        return lambda: given
    known = {"ca": ca, "cert": cert, "key": key}
    files = {name: file or os.environ.get(_VARIABLES[name]) or None for name, file in known.items()}
    if not any(files.values()):
        return lambda: given
    return _Files({name: file and os.path.abspath(file) for name, file in files.items()}, given)


class _Files:
    """They are read at once, and again where they have changed; what was read last holds while they cannot be used."""

    def __init__(self, files: dict[str, str | None], given: Security) -> None:
        self._files = files
        self._given = given
        self._seen = self._states()
        self._known = self._read()

    def __call__(self) -> Security:
        # Looked at before they are read: what changes meanwhile is read by the next call.
        seen = self._states()
        if seen != self._seen:
            self._seen = seen
            try:
                self._known = self._read()
            except (ValueError, OSError) as error:
                _log.warning("certificates have changed and cannot be used, those of before hold on: %s", error)
        return self._known

    def _states(self) -> list[tuple[int, ...] | None]:
        return [None if file is None else _state(file) for file in self._files.values()]

    def _read(self) -> Security:
        context = _context(self._files)
        read = {name: None if file is None else Path(file).read_bytes() for name, file in self._files.items()}
        return Security(
            self._given.credentials or grpc.ssl_channel_credentials(read["ca"], read["key"], read["cert"]),
            self._given.tls or context,
        )


def _state(file: str) -> tuple[int, ...] | None:
    """What changes with the file's content; None where there is none."""
    try:
        known = os.stat(file)
    except OSError:
        return None
    return known.st_ino, known.st_size, known.st_mtime_ns


def _context(files: dict[str, str | None]) -> ssl.SSLContext:
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
