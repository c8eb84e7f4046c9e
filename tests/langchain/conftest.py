"""What the tests of this folder share."""

from tests.langchain.world import world, worlds

__all__ = ["world", "worlds"]
