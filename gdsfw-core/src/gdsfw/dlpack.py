"""DLPack capsules of memory that a view owns (https://dmlc.github.io/dlpack/latest/, versions 0.8 and 1.0)."""

from __future__ import annotations

import ctypes as c
import itertools
import threading
from collections.abc import Callable
from typing import Any, ClassVar

UINT = 1
READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY


class _Device(c.Structure):
    _fields_: ClassVar = [("type", c.c_int32), ("id", c.c_int32)]


class _DataType(c.Structure):
    _fields_: ClassVar = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class Tensor(c.Structure):
    """DLTensor."""

    _fields_: ClassVar = [
        ("data", c.c_void_p),
        ("device", _Device),
        ("ndim", c.c_int32),
        ("dtype", _DataType),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]


_DELETER = c.CFUNCTYPE(None, c.c_void_p)


class Managed(c.Structure):
    """DLManagedTensor."""

    _fields_: ClassVar = [("tensor", Tensor), ("context", c.c_void_p), ("deleter", _DELETER)]


class ManagedVersioned(c.Structure):
    """DLManagedTensorVersioned."""

    _fields_: ClassVar = [
        ("major", c.c_uint32),
        ("minor", c.c_uint32),
        ("context", c.c_void_p),
        ("deleter", _DELETER),
        ("flags", c.c_uint64),
        ("tensor", Tensor),
    ]


_DESTRUCTOR = c.CFUNCTYPE(None, c.c_void_p)
_new = c.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, _DESTRUCTOR)
_valid = c.pythonapi.PyCapsule_IsValid
_valid.restype, _valid.argtypes = c.c_int, (c.c_void_p, c.c_char_p)
_pointer = c.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c.c_void_p, (c.c_void_p, c.c_char_p)

#: What capsules given out need, by the number in their context: they outlive the names that made them.
_live: dict[int, tuple[Any, Callable[[], None]]] = {}
_numbers = itertools.count(1)
_lock = threading.Lock()


def _release(number: int) -> None:
    with _lock:
        held = _live.pop(number, None)
    if held is not None:
        held[1]()


def _delete(managed: int) -> None:
    _release(Managed.from_address(managed).context or 0)


def _delete_versioned(managed: int) -> None:
    _release(ManagedVersioned.from_address(managed).context or 0)


def _destroy(capsule: int) -> None:
    """A capsule that nobody took over still has its first name."""
    for name, kind in ((b"dltensor", Managed), (b"dltensor_versioned", ManagedVersioned)):
        if _valid(capsule, name):
            _release(kind.from_address(_pointer(capsule, name)).context or 0)


# Kept for as long as the module: capsules may outlive everything else.
_DELETE, _DELETE_VERSIONED, _DESTROY = _DELETER(_delete), _DELETER(_delete_versioned), _DESTRUCTOR(_destroy)


def export(
    address: int, nbytes: int, device: tuple[int, int], *, read_only: bool, versioned: bool, done: Callable[[], None]
) -> Any:
    """A capsule of `nbytes` bytes (uint8) at an address of a device.

    Args:
        device: (DLPack's device type, ordinal).
        versioned: in the form of version 1, the only one that can say read-only.
        done: called once, when whoever took the capsule, or nobody, lets go of it.
    """
    shape = (c.c_int64 * 1)(nbytes)
    tensor = Tensor(address, _Device(*device), 1, _DataType(UINT, 8, 1), shape, None, 0)
    number = next(_numbers)
    managed: Managed | ManagedVersioned
    if versioned:
        flags = READ_ONLY if read_only else 0
        managed = ManagedVersioned(1, 0, number, _DELETE_VERSIONED, flags, tensor)
    else:
        managed = Managed(tensor, number, _DELETE)
    with _lock:
        _live[number] = ((managed, shape), done)
    return _new(c.addressof(managed), b"dltensor_versioned" if versioned else b"dltensor", _DESTROY)
