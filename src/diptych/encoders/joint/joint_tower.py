"""What the two towers of a joint model share."""

from __future__ import annotations

from typing import ClassVar

from diptych.encoders.encoder import Encoder
from diptych.encoders.joint.joint_folder import JointFolder
from diptych.encoders.joint.open_joint_folder import open_joint_folder


class JointTower(Encoder):
    """One tower of a joint model, named by what its folder holds and not by where that lies."""

    learns: ClassVar[bool] = False

    folder: str

    @property
    def identity(self) -> str:
        """The class and what the folder holds, wherever it lies."""
        return f"{type(self).__name__}(folder={self.weights_digest[:32]!r})"

    @property
    def weights_digest(self) -> str:
        """The digest of every file of the model that shapes the features."""
        return self.model().digest

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        return self.model().n_features

    def model(self) -> JointFolder:
        """Return the opened folder."""
        if getattr(self, "_opened", (None,))[0] != self.folder:
            self._opened = (self.folder, open_joint_folder(self.folder))
        return self._opened[1]
