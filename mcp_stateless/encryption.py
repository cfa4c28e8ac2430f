"""Encryption of sealed state (AES-256-GCM), for servers whose recorded values no client should read.

Needs the extra `encryption`; imported only where the setting asks for it.
"""

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mcp_stateless.protocol.sealing import Rejected

NONCE_BYTES: Final = 12
"""Random for each token (NIST SP 800-38D, 8.2.2). One key is good for 2^32 tokens; rotate signing keys long before."""


class AesGcm:
    """See `Cipher`. Keys are 32 bytes, as `sealing` derives them."""

    def encrypt(self, key: bytes, body: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + AESGCM(key).encrypt(nonce, body, None)

    def decrypt(self, key: bytes, body: bytes) -> bytes:
        try:
            return AESGCM(key).decrypt(body[:NONCE_BYTES], body[NONCE_BYTES:], None)
        except (InvalidTag, ValueError) as error:
            raise Rejected("does not decrypt") from error
