"""The service from Python."""

from diptych.service.client.client import Client
from diptych.service.client.service_error import ServiceError

__all__ = ["Client", "ServiceError"]
