"""Workspace of a server: all files of a folder, by their names relative to it."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.request import url2pathname

from agrotools.calling.workspace import (
    ARTIFACT_NAME,
    SUFFIX,
    Workspace,
    file_not_found,
    path_inside,
    read_sidecar,
    regular_file,
    sidecars,
    write_artifact,
)
from agrotools.core import Artifact, SampleFile, ToolError


@dataclass(frozen=True)
class FolderWorkspace(Workspace):
    """All files of a folder by relative name, with metadata from their sidecars. ``root`` is the folder.

    An absolute path and a ``file:`` URI name a file, too, if it is in the folder. Links are followed only within the
    folder.
    """

    def resolve(self, name: str, *, by_last_part: bool = False) -> Path:  # noqa: ARG002 - names are paths
        """Return the real path of a file of the folder, or of an artifact by its name. Errors as in the base class."""
        assert self.root is not None
        name = path_inside(
            self._relative(name),
            "use the name of a file relative to the workspace, as in photos/field.jpg",
        )
        path, made = self.root / name, self.artifacts / name
        if os.path.lexists(path):
            return regular_file(path, name, within=self.root)
        if ARTIFACT_NAME.fullmatch(name) and os.path.lexists(made):
            return regular_file(made, name, within=self.artifacts)
        raise file_not_found(name, self.names(limit=1000), close_to=name)

    def _relative(self, name: str) -> str:
        """Return an absolute path or ``file:`` URI in the folder as the name relative to it; else the name itself."""
        assert self.root is not None
        try:
            path = _local_path(name)
            if path.is_absolute() and (real := path.resolve()).is_relative_to(self.root):
                return str(real.relative_to(self.root))
        except (
            ValueError,
            OSError,
            RuntimeError,
        ):  # a NUL character, a ring of links
            pass
        return name

    def info(self, name: str) -> SampleFile | None:
        """Return the metadata in the sidecar of a file, or None.

        Raises:
            ToolError: ``unreadable_file`` (the sidecar is invalid), ``path_outside_workspace`` (it is such a link).
        """
        path = self.resolve(name)
        for sidecar in sidecars(path):
            if os.path.lexists(sidecar):
                regular_file(sidecar, sidecar.name, within=self.root)
        return read_sidecar(path)

    def keep(self, artifact: Artifact, content: bytes) -> Artifact:
        """Write an artifact under a name that is unused, also in the folder itself.

        Raises:
            OSError: it cannot be written, or the folder of artifacts is a link.
        """
        assert self.root is not None
        if self.artifacts.is_symlink():
            raise OSError(errno.ELOOP, "it is a link", str(self.artifacts))
        return write_artifact(
            self.artifacts, artifact, content, {entry.name for entry in self.root.iterdir()}
        )

    def names(self, within: str = ".", *, limit: int) -> list[str]:
        """Return names of regular files below a subfolder, sorted by folder; hidden ones and sidecars are left out.

        Raises:
            ToolError: ``path_outside_workspace``; ``file_not_found``: there is no such subfolder.
        """
        assert self.root is not None
        found: list[str] = []
        within = self._relative(within)
        start = self.root / path_inside(within)
        if not os.path.lexists(start):
            raise ToolError("file_not_found", f"there is no folder {within[:100]!r}")
        for folder, subfolders, files in os.walk(start):
            if not Path(folder).resolve().is_relative_to(self.root):
                raise ToolError(
                    "path_outside_workspace",
                    f"{within[:100]!r} is a link that leads out of the workspace",
                )
            visible = (each for each in subfolders if each[0] != ".")
            subfolders[:] = sorted(each for each in visible if Path(folder, each) != self.artifacts)
            shown = sorted(each for each in files if each[0] != "." and not each.endswith(SUFFIX))
            found += [
                str(Path(folder, each).relative_to(self.root))
                for each in shown[: limit - len(found)]
            ]
            if len(found) >= limit:
                break
        return found


def _local_path(name: str) -> Path:
    """Return the path that a name or a ``file:`` URI means."""
    if not name.lower().startswith("file:"):
        return Path(name)
    # An argument is a path, in which file:///data has become file:/data.
    return Path(url2pathname("/" + name[len("file:") :].lstrip("/")))
