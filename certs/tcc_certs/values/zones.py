"""Named time zones: the offsets that a core records, and calendar computations with them.

Every machine computes hours and days from these records, and not from its time zone database.  A
moment outside of the recorded time has no hour and no day.  Normative text: docs/spec/core.md,
sections 1 and 9.  Cost: a binary search for each moment.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

DAY = 86_400_000
MAX_OFFSETS = 1024  # most offsets of a zone
MAX_ZONES = 1024  # most zones of a core


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone.

    Attributes:
        starts: the moments at which its offset changes, in increasing UTC milliseconds.  The first
            is the start of the recorded time.
        offsets: the offset from each start on, in milliseconds ahead of UTC.
        until: the end of the recorded time; it is not included.
    """

    name: str
    starts: tuple[int, ...] = field(hash=False, repr=False)
    offsets: tuple[int, ...] = field(hash=False, repr=False)
    until: int = field(hash=False, repr=False)

    def local(self, ms: int) -> int | None:
        """Return the local time at a moment, in milliseconds since 1970-01-01T00:00 local time.

        None: the moment is outside of the recorded time.
        """
        if not self.starts[0] <= ms < self.until:
            return None
        return ms + self.offsets[bisect_right(self.starts, ms) - 1]

    def day_start(self, day: int) -> int | None:
        """Return the first moment at which the clocks show a day, in UTC milliseconds.

        None: the clocks skip the day, or the day starts outside of the recorded time.

        Args:
            day: the number of the day; 1970-01-01 is day 0.
        """
        midnight = day * DAY
        # Offsets are less than a day, so only offsets that apply within a day of midnight matter.
        first = max(0, bisect_right(self.starts, midnight - DAY) - 1)
        last = bisect_right(self.starts, midnight + 2 * DAY)
        for at in range(first, last):
            end = self.starts[at + 1] if at + 1 < len(self.starts) else self.until
            start = max(self.starts[at], midnight - self.offsets[at])
            if start < end and start + self.offsets[at] < midnight + DAY:
                began_earlier = at == 0 and start + self.offsets[at] > midnight
                return None if began_earlier else start
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Zones:
    """The zones that a core records.

    Attributes:
        version: the version of their time zone database, such as ``2026a``.
        until: the end of the recorded time, in UTC milliseconds.
        of: the zones by name.
    """

    version: str
    until: int
    of: Mapping[str, Zone]

    def text(self, name: str) -> str:
        """Return a description of a zone with its source and the end of the recorded time."""
        end = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.until)
        return f"{name} (tzdata {self.version}, until {end:%Y-%m-%d})"
