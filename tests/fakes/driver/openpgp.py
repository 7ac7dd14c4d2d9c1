"""A key and detached signatures as apt verifies them (OpenPGP version 4, RSA), with what Ansible itself depends on."""

from __future__ import annotations

import base64
import hashlib
import struct
import time
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

USER = b"Stand-in package sources <driver@example.invalid>"
RSA, SHA256, BINARY, POSITIVE_CERTIFICATION = 1, 8, 0x00, 0x13


class Key:
    """A signing key, kept in a file so that a host built before trusts what is built later."""

    def __init__(self, file: Path) -> None:
        if not file.exists():
            made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            kinds = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            file.write_bytes(f"{int(time.time()) - 60}\n".encode() + made.private_bytes(*kinds))
        since, dummy, pem = file.read_bytes().partition(b"\n")
        self._since = int(since)
        self._key = serialization.load_pem_private_key(pem, None)
        numbers = self._key.public_key().public_numbers()
        self._public = struct.pack(">BIB", 4, self._since, RSA) + _mpi(numbers.n) + _mpi(numbers.e)
        self.fingerprint = hashlib.sha1(self._prefixed).digest()

    @property
    def _prefixed(self) -> bytes:
        return b"\x99" + struct.pack(">H", len(self._public)) + self._public

    def public(self) -> bytes:
        """Return the armored public key."""
        certified = self._prefixed + b"\xb4" + struct.pack(">I", len(USER)) + USER
        may_sign = bytes((2, 27, 0x03))
        body = _packet(6, self._public) + _packet(13, USER) + _packet(2, self._sign(certified, POSITIVE_CERTIFICATION, may_sign))
        return _armored("PUBLIC KEY BLOCK", body)

    def sign(self, text: bytes) -> bytes:
        """Return an armored detached signature."""
        return _armored("SIGNATURE", _packet(2, self._sign(text, BINARY)))

    def _sign(self, text: bytes, kind: int, more: bytes = b"") -> bytes:
        # The key certifies itself as of its making, so that its file never changes.
        when = self._since if kind == POSITIVE_CERTIFICATION else int(time.time()) - 30
        made_at = bytes((5, 2)) + struct.pack(">I", when)
        issuer = bytes((22, 33, 4)) + self.fingerprint
        hashed = made_at + issuer + more
        head = struct.pack(">BBBBH", 4, kind, RSA, SHA256, len(hashed)) + hashed
        total = text + head + b"\x04\xff" + struct.pack(">I", len(head))
        digest = hashlib.sha256(total).digest()
        number = self._key.sign(total, padding.PKCS1v15(), hashes.SHA256())
        unhashed = bytes((9, 16)) + self.fingerprint[-8:]
        return head + struct.pack(">H", len(unhashed)) + unhashed + digest[:2] + _mpi(int.from_bytes(number, "big"))


def _mpi(number: int) -> bytes:
    return struct.pack(">H", number.bit_length()) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def _packet(tag: int, body: bytes) -> bytes:
    return bytes((0xC0 | tag, 0xFF)) + struct.pack(">I", len(body)) + body


def _armored(kind: str, body: bytes) -> bytes:
    text = base64.b64encode(body).decode()
    lines = "\n".join(text[start : start + 64] for start in range(0, len(text), 64))
    return (
        f"-----BEGIN PGP {kind}-----\n\n{lines}\n={base64.b64encode(_crc24(body)).decode()}\n-----END PGP {kind}-----\n".encode()
    )


def _crc24(body: bytes) -> bytes:
    total = 0xB704CE
    for byte in body:
        total ^= byte << 16
        for dummy in range(8):
            total <<= 1
            if total & 0x1000000:
                total ^= 0x1864CFB
    return (total & 0xFFFFFF).to_bytes(3, "big")
