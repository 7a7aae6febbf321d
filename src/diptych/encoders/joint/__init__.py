"""Local models that know pictures and words together: CLIP, SigLIP and the like."""

from diptych.encoders.joint.find_joint_model import find_joint_model
from diptych.encoders.joint.joint_image_encoder import JointImageEncoder
from diptych.encoders.joint.joint_model import JointModel
from diptych.encoders.joint.joint_text_encoder import JointTextEncoder

__all__ = ["JointImageEncoder", "JointModel", "JointTextEncoder", "find_joint_model"]
