from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class CallbackState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CALLBACK_STATE_UNSPECIFIED: _ClassVar[CallbackState]
    CALLBACK_STATE_PENDING: _ClassVar[CallbackState]
    CALLBACK_STATE_DELIVERED: _ClassVar[CallbackState]
    CALLBACK_STATE_GIVEN_UP: _ClassVar[CallbackState]
CALLBACK_STATE_UNSPECIFIED: CallbackState
CALLBACK_STATE_PENDING: CallbackState
CALLBACK_STATE_DELIVERED: CallbackState
CALLBACK_STATE_GIVEN_UP: CallbackState
