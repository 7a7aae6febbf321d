"""Running the service: servers, workers, logs, metrics, readiness."""
