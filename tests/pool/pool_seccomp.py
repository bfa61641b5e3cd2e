"""``python pool_seccomp.py ERRNO CALL... -- PROGRAM``: run it where system calls are refused."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

#: Numbers of x86_64; those of aarch64 where they differ.
_X86 = {"eventfd2": 290, "memfd_create": 319, "pidfd_send_signal": 424, "pidfd_open": 434}
_ARM = {**_X86, "eventfd2": 19, "memfd_create": 279}
NUMBERS = {"x86_64": _X86, "aarch64": _ARM}.get(platform.machine(), {})

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD_NUMBER, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_REFUSE, _ALLOW = 0x00050000, 0x7FFF0000


class _Program(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def refuse(numbers: list[int], code: int) -> None:
    """From here on these system calls of this process and its children fail with ``code``."""
    steps = [struct.pack("HBBI", _LOAD_NUMBER, 0, 0, 0)]
    for number in numbers:
        steps.append(struct.pack("HBBI", _JUMP_IF_EQUAL, 0, 1, number))
        steps.append(struct.pack("HBBI", _RETURN, 0, 0, _REFUSE | code))
    steps.append(struct.pack("HBBI", _RETURN, 0, 0, _ALLOW))
    program = _Program(len(steps), b"".join(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(
        _SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0
    ):
        sys.exit(f"cannot filter: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    code, *calls = sys.argv[1 : sys.argv.index("--")]
    refuse([NUMBERS[call] for call in calls], getattr(errno, code))
    command = [sys.executable, *sys.argv[sys.argv.index("--") + 1 :]]
    os.execv(sys.executable, command)  # noqa: S606  # as wanted
