"""Every failure of a call, as one exception class per gRPC code with the mesh's own reason on it."""

from __future__ import annotations

import base64
import copyreg
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

#: Reason of a connection on whose TLS the two ends do not agree: trying again does not help.
TLS_FAILED = "TLS_FAILED"
# As gRPC's and Python's own TLS tell of certificates that are not trusted, names that differ, and ports without TLS.
_TLS_FAILURES = re.compile(
    "CERTIFICATE_VERIFY_FAILED|WRONG_VERSION_NUMBER|is not in peer certificate|Hostname Verification Check failed"
)


def is_tls_failure(message: str) -> bool:
    """Whether two ends do not agree on TLS, by what a library says of a connection."""
    return _TLS_FAILURES.search(message) is not None


DETAILS_KEY = "grpc-status-details-bin"


@dataclass(frozen=True)
class FieldFault:
    """One fault of an input: its path (``runtime.prepare[2].target``) and what is wrong there."""

    field: str
    description: str


class PolarError(Exception):
    """A failed call.

    Attributes:
        code: gRPC code by name, for example ``INVALID_ARGUMENT``.
        reason: Reason from the mesh's catalogue, for example ``INVALID_TASK``; where the mesh did not answer
            (nothing listens, the connection broke), the name of ``code``.
        boundary: Part at whose edge it was seen: provider, harness, sandbox, proxy, task, evaluator, mesh; else empty.
        message: What happened and what to do.
        fields: All faults of an input at once.
        retryable: True when the same call can succeed later.
        retry_after_s: Seconds that the server asks to wait before that; 0 where it does not say.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        reason: str = "",
        boundary: str = "",
        fields: tuple[FieldFault, ...] = (),
        retryable: bool = False,
        retry_after_s: float = 0.0,
    ) -> None:
        self.message = message
        self.code = code
        self.reason = reason or code
        self.boundary = boundary
        self.fields = fields
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        faults = (f"\n  {fault.field}: {fault.description}" for fault in fields)
        # A message of the mesh tells the first of them itself.
        more = "".join(fault for fault in faults if fault not in message)
        super().__init__(f"{self.reason}: {message}{more}")

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is made again from its text alone, which __init__ does not take: a worker's would be lost on its way.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InvalidArgument(PolarError):
    """The input is wrong; see ``fields``."""


class NotFound(PolarError):
    """No such task, session or consumer."""


class AlreadyExists(PolarError):
    """The task id or request id is known with another content."""


class FailedPrecondition(PolarError):
    """Right input, wrong state: no node offers the backend, the session has not ended."""


class ResourceExhausted(PolarError):
    """A named limit of the mesh was reached."""


class Aborted(PolarError):
    """Reason ``STREAM_REPLACED``: another stream of the same consumer was opened. ``STREAM_LAPSED`` is retried by the client."""


class Cancelled(PolarError):
    """The call was ended on this side."""


class DeadlineExceeded(PolarError):
    """The time given to the call is over."""


class Unavailable(PolarError):
    """Nothing answered within the time given to retries."""


class Unauthenticated(PolarError):
    """No valid credential."""


class PermissionDenied(PolarError):
    """The credential does not allow this."""


class DataLoss(PolarError):
    """Stored bytes are missing or damaged."""


class Internal(PolarError):
    """A broken invariant of the mesh, or a peer that is not the mesh."""


_CLASSES: dict[grpc.StatusCode, type[PolarError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.OUT_OF_RANGE: InvalidArgument,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    grpc.StatusCode.ABORTED: Aborted,
    grpc.StatusCode.CANCELLED: Cancelled,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.DATA_LOSS: DataLoss,
}

# What a connection that breaks looks like, as nothing but the mesh sends an ErrorInfo: refused, cut by RST_STREAM
# (CANCELLED, ABORTED, INTERNAL) or in the middle of a message (UNKNOWN, INTERNAL).
_TRANSPORT_CODES = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)

# What only another server says, or another service of the mesh: its own refusals have a reason.
_OTHERS_CODES = frozenset(
    {grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
)


def from_rpc_error(error: grpc.RpcError) -> PolarError:
    """The typed form of what grpcio raised; reads google.rpc.Status from the trailers."""
    return _typed(error.code(), error.details() or "", _status(error).details)


def from_connect_error(error: Mapping[str, Any]) -> PolarError:
    """The typed form of an error in the JSON of Connect's protocol."""
    name = {"canceled": "CANCELLED"}.get(error.get("code", ""), error.get("code", "unknown").upper())
    code = getattr(grpc.StatusCode, name, grpc.StatusCode.UNKNOWN)
    details = [
        any_pb2.Any(type_url=f"type.googleapis.com/{one['type']}", value=_unpadded(one["value"]))
        for one in error.get("details", [])
    ]
    return _typed(code, error.get("message", ""), details)


def _unpadded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4))


def _typed(code: grpc.StatusCode, message: str, details: Iterable[any_pb2.Any]) -> PolarError:
    info = error_details_pb2.ErrorInfo()
    violations = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    for detail in details:
        for known in (info, violations, retry):
            detail.Unpack(known)
    asked = retry.HasField("retry_delay")
    if info.reason == "" and code in _OTHERS_CODES:
        message = f"{message or code.name}: the service that was meant did not say this; is the address right?"
    tls = info.reason == "" and code == grpc.StatusCode.UNAVAILABLE and is_tls_failure(message)
    return _CLASSES.get(code, Internal)(
        message or code.name,
        code=code.name,
        reason=TLS_FAILED if tls else info.reason,
        boundary=info.metadata.get("boundary", ""),
        fields=tuple(FieldFault(one.field, one.description) for one in violations.field_violations),
        retryable=asked or (info.reason == "" and code in _TRANSPORT_CODES and not tls),
        retry_after_s=retry.retry_delay.ToTimedelta().total_seconds() if asked else 0.0,
    )


def _status(error: grpc.RpcError) -> status_pb2.Status:
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY:
            return status_pb2.Status.FromString(value)
    return status_pb2.Status()
