"""The function of the array API's extension `linalg` that is a reduction."""

from cranefold._functions import vector_norm

__all__ = ["vector_norm"]
