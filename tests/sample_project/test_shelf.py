"""How a project tests itself with the plugin: nothing here but pytest, its own code and what the wheel installs."""

from __future__ import annotations

import sys
from datetime import timedelta
from io import StringIO
from typing import TYPE_CHECKING

import pytest
import shelf
from shelf import Shelf

from workersai_client import Client, RateLimited

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workersai_emulator import WorkersAI

DOCUMENTS = ["how to bake bread with rye", "tuning the carburettor of a car", "planting tulips before winter"]


@pytest.fixture
def client(workersai: WorkersAI) -> Iterator[Client]:
    with Client(workersai.account_id, workersai.token, workersai.base_url, max_retries=0) as made:
        yield made


@pytest.mark.workersai(script="queued:5m, done")
def test_documents_wait_in_the_queue_for_minutes_that_take_no_time(
    workersai: WorkersAI, client: Client
) -> None:
    workersai.clock.freeze()
    books = Shelf(client, DOCUMENTS)
    handle = books.submit()
    assert not books.collect(handle)
    workersai.clock.advance(timedelta(minutes=5))
    assert books.collect(handle)
    assert books.nearest("which flour is there in rye bread?") == DOCUMENTS[0]
    assert [batch.items for batch in workersai.batches.list()] == [3]


def test_a_busy_service_refuses_the_submit(workersai: WorkersAI, client: Client) -> None:
    workersai.fail("submit", 3040)
    with pytest.raises(RateLimited):
        Shelf(client, DOCUMENTS).submit()
    assert workersai.batches.list() == []


@pytest.mark.workersai(limits={"payload_bytes": 100})
def test_a_shelf_that_is_too_large_is_refused(client: Client) -> None:
    with pytest.raises(Exception, match="Request is too large"):
        Shelf(client, DOCUMENTS).submit()


@pytest.mark.usefixtures("workersai_env")
@pytest.mark.workersai(script="instant")
def test_the_program_finds_the_emulator_by_its_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["shelf.py", "when are tulips planted?"])
    monkeypatch.setattr(sys, "stdin", StringIO("\n".join(DOCUMENTS)))
    shelf.main()
    assert capsys.readouterr().out == f"{DOCUMENTS[2]}\n"


@pytest.mark.parametrize("number", range(8))
def test_accounts_of_parallel_tests_do_not_meet(workersai: WorkersAI, client: Client, number: int) -> None:
    for _ in range(number):
        Shelf(client, DOCUMENTS).submit()
    assert len(workersai.batches.list()) == number
