"""Pretrained networks: weights read without their frameworks, written as ONNX graphs, run on ONNX Runtime."""
