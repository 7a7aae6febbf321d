"""Networks written down once for each machine and run on ONNX Runtime."""
