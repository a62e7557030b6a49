"""The state file: an SQLite database with one writer, and all the SQL that there is.

It is in WAL mode and is not synced at each commit: what was committed outlives the process, however that ends, but
the last moments of it may be gone after a power failure.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.store import NotKept

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

#: What says, at a fixed place of the file, that it is one of ours: "WAIE".
APPLICATION: Final = 0x57414945
VERSION: Final = 1
_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100
#: A longer log is copied into the file.
LONG_LOG_BYTES: Final = 16_000_000
_log = logging.getLogger(__name__)

_TABLES: Final = """
create table seeds (seed integer not null);
create table numbers (account text not null, counter text not null, number integer not null,
    primary key (account, counter)) without rowid;
create table owners (id text primary key, said blob, counts blob) without rowid;
create table batches (id integer primary key, account text not null, request text not null, turn integer not null,
    submit blob not null, life blob not null);
create table payloads (id integer primary key, bytes blob not null);
"""

SEED: Final = "update seeds set seed = ?"
NUMBER: Final = "insert into numbers values (?, ?, ?) on conflict do update set number = excluded.number"
SAID: Final = "insert into owners (id, said) values (?, ?) on conflict do update set said = excluded.said"
COUNTS: Final = (
    "insert into owners (id, counts) values (?, ?) on conflict do update set counts = excluded.counts"
)
FORGET_OWNER: Final = "delete from owners where id = ?"
FORGET_NUMBERS: Final = "delete from numbers where account = ?"
FORGET_EXCHANGES: Final = "delete from numbers where account = ? and counter <> 'submit'"
BATCH: Final = "insert into batches values (?, ?, ?, ?, ?, ?)"
PART: Final = "insert into payloads values (? << 20 | ?, ?)"
LIFE: Final = "update batches set turn = ?, life = ? where id = ?"
FORGET_BATCH: Final = "delete from batches where id = ?"
FORGET_PARTS: Final = "delete from payloads where id between ?1 << 20 and (?1 + 1 << 20) - 1"
FORGET_ALL: Final = (
    "delete from numbers",
    "delete from owners",
    "delete from batches",
    "delete from payloads",
)

Statement = tuple[str, Sequence[Any]]


class StateFile:
    """An open file. Its methods block, and are for one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._check_header()
        try:
            self._database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as fault:
            raise self._refused(f"cannot be opened: {fault}") from None
        try:
            self._prepare()
        except sqlite3.Error as fault:
            self._database.close()
            if getattr(fault, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise self._refused(
                    "is in use by another emulator: a file has one, and --state redis://… is for several"
                ) from None
            raise self._refused(f"cannot be used: {fault}; it is left as it was") from None
        except ValueError:
            self._database.close()
            raise

    @property
    def seed(self) -> int | None:
        """The seed that was kept last."""
        found = self._database.execute("select seed from seeds").fetchone()
        return None if found is None or found[0] < 0 else int(found[0])

    def numbers(self) -> Iterator[tuple[str, Any, int]]:
        """Each account's counters."""
        return self._rows("select account, counter, number from numbers")

    def owners(self) -> Iterator[tuple[str, bytes | None, bytes | None]]:
        """What each owner said, and what was counted of it."""
        return self._rows("select id, said, counts from owners")

    def batches(self) -> Iterator[tuple[int, str, str, bytes, bytes]]:
        """The batches, the one polled longest ago first: row, account, request, submit, life."""
        return self._rows("select id, account, request, submit, life from batches order by turn, id")

    def write(self, statements: Iterable[Statement]) -> None:
        """Carry out statements at one stroke. Raises NotKept where there is no room, or no file any more."""
        try:
            self._database.execute("begin immediate")
            for sql, values in statements:
                self._database.execute(sql, values)
            self._database.execute("commit")
        except sqlite3.Error as fault:
            if self._database.in_transaction:
                self._database.execute("rollback")
            raise NotKept(f"the state file {self._path} cannot be written: {fault}") from None

    def payload(self, row: int) -> bytes:
        """The bytes of a batch's request. Raises NotKept where the file is damaged."""
        try:
            found = self._database.execute(
                "select bytes from payloads where id between ?1 << 20 and (?1 + 1 << 20) - 1 order by id",
                (row,),
            )
            return b"".join(part for (part,) in found)
        except sqlite3.Error as fault:
            raise NotKept(f"the state file {self._path} cannot be read: {fault}") from None

    def log_is_long(self) -> bool:
        """Whether it is time to copy the log into the file."""
        try:
            return self._log.stat().st_size > LONG_LOG_BYTES
        except FileNotFoundError:
            return False

    def copy_log(self) -> None:
        """Copy the log into the file, so that it is begun again; that takes a sync."""
        try:
            self._database.execute("pragma wal_checkpoint(truncate)").fetchone()
        except sqlite3.Error as fault:
            _log.warning("the state file %s cannot take up its log: %s", self._path, fault)

    def close(self) -> None:
        """Bring all into the one file, and let go of it."""
        self._database.close()

    def _rows(self, sql: str) -> Iterator[Any]:
        try:
            yield from self._database.execute(sql)
        except sqlite3.Error as fault:
            raise self._refused(f"is damaged: {fault}; it is left as it was") from None

    def _check_header(self) -> None:
        """Leave alone what is no state of ours, before SQLite touches it."""
        try:
            header = self._path.read_bytes() if self._path.stat().st_size < _HEADER_BYTES else self._head()
        except FileNotFoundError:
            return
        except OSError as fault:
            raise self._refused(f"cannot be opened: {fault.strerror}") from None
        if not header or self._path.with_name(self._path.name + "-journal").exists():
            return  # new, or its making was interrupted, which SQLite undoes
        if not header.startswith(_MAGIC) or int.from_bytes(header[68:72], "big") != APPLICATION:
            raise self._refused("is not the state of an emulator; it is left as it was")

    def _head(self) -> bytes:
        with self._path.open("rb") as file:
            return file.read(_HEADER_BYTES)

    def _prepare(self) -> None:
        run = self._database.execute
        run("pragma locking_mode = exclusive")
        run("begin immediate")
        if run("select count(*) from sqlite_master").fetchone() == (0,):
            run(f"pragma application_id = {APPLICATION}")
            run(f"pragma user_version = {VERSION}")
            for statement in filter(str.strip, _TABLES.split(";")):
                run(statement)
            run("insert into seeds values (-1)")
        (version,) = run("pragma user_version").fetchone()
        if version > VERSION:
            raise self._refused(
                f"has version {version}, of a newer emulator; this one knows {VERSION}. It is left as it was"
            )
        # Parts of a payload whose batch never came to be.
        run("delete from payloads where id >> 20 not in (select id from batches)")
        run("commit")
        run("pragma journal_mode = wal")
        run("pragma synchronous = normal")
        run("pragma wal_autocheckpoint = 0")

    def _refused(self, why: str) -> ValueError:
        return ValueError(f"--state: {self._path} {why}")
