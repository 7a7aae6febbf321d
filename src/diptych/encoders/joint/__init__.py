"""Local models that know pictures and words together: CLIP, SigLIP and the like."""

from diptych.encoders.joint.joint_model import JointImageEncoder, JointModel, JointTextEncoder, find_joint_model

__all__ = ["JointImageEncoder", "JointModel", "JointTextEncoder", "find_joint_model"]
