"""Bytes by their sha256: written once under a temporary name, renamed into place, hashed again when read."""

from __future__ import annotations

import contextlib
import hashlib
import posixpath
import uuid

import fsspec

from trinity_assets.errors import ArtifactError


class ArtifactStore:
    """A content-addressed store at an fsspec ``url`` (a local path, ``s3://bucket/prefix``, ``memory://...``).

    An object lies at ``objects/<first two hex digits>/<sha256>``. Objects never change; equal bytes are one object.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._fs, self._root = fsspec.core.url_to_fs(url)

    def path(self, sha256: str) -> str:
        """Where the object with this sha lies (whether it exists or not)."""
        return posixpath.join(self._root, "objects", sha256[:2], sha256)

    def put(self, data: bytes) -> str:
        """Keep ``data`` and return its sha256. A process killed at any moment leaves no half object behind its name."""
        sha256 = hashlib.sha256(data).hexdigest()
        target = self.path(sha256)
        if self._fs.exists(target) and self._fs.cat_file(target) == data:
            return sha256
        temporary = f"{target}.{uuid.uuid4().hex}.tmp"
        try:
            self._fs.makedirs(posixpath.dirname(target), exist_ok=True)
            with self._fs.open(temporary, "wb") as stream:
                stream.write(data)
            self._fs.mv(temporary, target)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._fs.rm(temporary)
            raise ArtifactError(
                f"cannot write {len(data)} bytes to the artifact store at {self.url}: {error}. "
                "Nothing was recorded; free space or fix the permissions and run again."
            ) from error
        return sha256

    def get(self, sha256: str) -> bytes:
        """The bytes of an object, re-hashed.

        Raises:
            ArtifactError: the object is missing, or its bytes no longer hash to its name.
        """
        path = self.path(sha256)
        try:
            data: bytes = self._fs.cat_file(path)
        except FileNotFoundError:
            raise ArtifactError(
                f"artifact {sha256[:12]} is not in the store at {self.url}; "
                "build the asset that made it again (`trinity-assets build --rebuild`)"
            ) from None
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise ArtifactError(
                f"artifact {path} is damaged: its bytes hash to {found[:12]}, its name says {sha256[:12]}; "
                "build the asset that made it again (`trinity-assets build --rebuild`)"
            )
        return data
