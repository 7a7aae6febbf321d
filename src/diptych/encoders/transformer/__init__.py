"""Transformer networks on ONNX Runtime, written from safetensors weights without PyTorch."""
