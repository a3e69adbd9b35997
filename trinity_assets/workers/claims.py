"""Claims: who is asking which question now, so that two processes with the same question pay for it once.

A claim is a lease. Its holder renews it while it asks and gives it up at the end; where the holder dies, it expires, or
falls at once where whoever wants it can see that the process is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from trinity_assets.workers.claimants import Claimant
from trinity_assets.workers.ledger_database import Database
from trinity_assets.workers.ledger_tables import ANSWERS, CLAIMS

CLAIMED_AT_ONCE = 256
"""Questions per claim: below SQLite's limit on bound values, and a transaction of a few milliseconds."""


@dataclass(frozen=True)
class Lease:
    """How long a claim lasts, how often it is renewed, and how often somebody waiting looks again: seconds."""

    seconds: float = 30.0
    renew_every_s: float = 10.0
    look_first_s: float = 0.1
    look_every_s: float = 2.0


@dataclass(frozen=True)
class Claimed:
    """What came of claiming: digests that are the claimant's now, that are settled, and that another one is asking."""

    mine: frozenset[str]
    settled: frozenset[str]
    theirs: frozenset[str]
    holders: frozenset[str] = frozenset()
    """Who asks ``theirs``: "process 12 on host"."""


class Claims:
    """The claims of one new claimant on the ledger in ``database``. Threads may share it."""

    def __init__(self, database: Database, lease: Lease, claimant: Claimant | None = None) -> None:
        self.lease = lease
        self.claimant = claimant or Claimant.new()
        self._database = database
        self._turn = threading.Lock()
        self._ended = False

    def claim(self, digests: Collection[str]) -> Claimed:
        """Claim those of ``digests`` (at most ``CLAIMED_AT_ONCE``) that are neither settled nor another's.

        Nothing is written when there are none.

        Raises:
            LedgerError: the ledger cannot be read or written; nothing was claimed.
        """
        wanted = sorted(set(digests))
        with self._turn, self._database.translated("claim questions in"):
            with self._database.reading() as connection:
                settled = _settled(connection, wanted)
                held, gone = self._held(connection, [one for one in wanted if one not in settled])
            free = [one for one in wanted if one not in settled and one not in held]
            if not free or self._ended:
                return Claimed(frozenset(), settled, frozenset(held), frozenset(held.values()))
            with self._database.exclusive() as connection:
                mine = self._take(connection, free, gone)
                # Settled since it was looked up: whoever held the claim wrote the answer before giving it up.
                meanwhile = _settled(connection, sorted(mine))
                self._delete(connection, meanwhile)
        theirs = frozenset(held) | (frozenset(free) - mine)
        return Claimed(mine - meanwhile, settled | meanwhile, theirs, frozenset(held.values()))

    def renew(self) -> frozenset[str]:
        """Renew the lease of every claim whose question is not settled yet, and give up the others; what is held.

        Raises:
            LedgerError: the ledger cannot be written; the leases are as they were.
        """
        own = CLAIMS.c.claimant == self.claimant.claimant
        with self._turn, self._database.translated("renew the claims in"), self._database.exclusive() as connection:
            connection.execute(
                sa.delete(CLAIMS).where(own, CLAIMS.c.request_digest.in_(sa.select(ANSWERS.c.request_digest)))
            )
            expires_at = self._database.now(connection) + self.lease.seconds
            connection.execute(sa.update(CLAIMS).where(own).values(expires_at=expires_at))
            return frozenset(connection.execute(sa.select(CLAIMS.c.request_digest).where(own)).scalars())

    def release(self, digests: Iterable[str]) -> None:
        """Give up claims whose questions were not settled; others may ask them.

        Raises:
            LedgerError: the ledger cannot be written; the claims stay until they expire.
        """
        with self._turn, self._database.translated("give up claims in"), self._database.exclusive() as connection:
            self._delete(connection, digests)

    def end(self) -> None:
        """Give up every claim, and claim none any more.

        Raises:
            LedgerError: the ledger cannot be written; the claims stay until they expire.
        """
        with self._turn:
            self._ended = True
            with self._database.translated("give up claims in"), self._database.exclusive() as connection:
                connection.execute(sa.delete(CLAIMS).where(CLAIMS.c.claimant == self.claimant.claimant))

    def _held(self, connection: sa.Connection, wanted: Sequence[str]) -> tuple[dict[str, str], frozenset[str]]:
        """Digest -> holder of what living others hold, and the claimants that have died without giving up."""
        query = sa.select(CLAIMS).where(
            CLAIMS.c.request_digest.in_(wanted),
            CLAIMS.c.expires_at > self._database.now(connection),
            CLAIMS.c.claimant != self.claimant.claimant,
        )
        rows = connection.execute(query).mappings().all()
        gone = self.claimant.dead_among(rows)
        return {
            row["request_digest"]: f"process {row['pid']} on {row['host']}"
            for row in rows
            if row["claimant"] not in gone
        }, gone

    def _take(self, connection: sa.Connection, free: Sequence[str], gone: Collection[str]) -> frozenset[str]:
        now = self._database.now(connection)
        fallen = sa.or_(CLAIMS.c.expires_at <= now, CLAIMS.c.claimant.in_([self.claimant.claimant, *sorted(gone)]))
        connection.execute(sa.delete(CLAIMS).where(CLAIMS.c.request_digest.in_(free), fallen))
        claim = asdict(self.claimant) | {"expires_at": now + self.lease.seconds}
        insert = self._database.insert(CLAIMS).on_conflict_do_nothing()
        connection.execute(insert, [{"request_digest": one, **claim} for one in free])
        own = sa.select(CLAIMS.c.request_digest).where(
            CLAIMS.c.claimant == self.claimant.claimant, CLAIMS.c.request_digest.in_(free)
        )
        return frozenset(connection.execute(own).scalars())

    def _delete(self, connection: sa.Connection, digests: Iterable[str]) -> None:
        listed = sorted(digests)
        if listed:
            connection.execute(
                sa.delete(CLAIMS).where(
                    CLAIMS.c.claimant == self.claimant.claimant, CLAIMS.c.request_digest.in_(listed)
                )
            )


def _settled(connection: sa.Connection, digests: Sequence[str]) -> frozenset[str]:
    query = sa.select(ANSWERS.c.request_digest).where(ANSWERS.c.request_digest.in_(digests))
    return frozenset(connection.execute(query).scalars())
