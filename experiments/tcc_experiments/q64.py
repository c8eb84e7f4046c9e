"""The numbers of a result, as they were before they were printed."""

from __future__ import annotations

from tcc_certs.formats.decimals import divide_nearest


def q64_of(text: str) -> int:
    """The Q64.64 number that prints as `text`, which has 20 digits after its point."""
    number = int(text.replace(".", ""))
    nearest = divide_nearest(abs(number) << 64, 10**20)
    return -nearest if number < 0 else nearest
