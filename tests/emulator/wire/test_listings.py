"""Listings: the models page by page and filter by filter, their schemas, tasks, authors and finetunes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_contracts import models
from workersai_contracts.routes import exchange_of
from workersai_emulator.listing import listed

BASE, M3 = "@cf/baai/bge-base-en-v1.5", "@cf/baai/bge-m3"
EMBEDDINGS = "0137cdcf-162a-4108-94f2-1ca59e8c65ee"
AT = datetime(2026, 3, 1, tzinfo=UTC).timestamp()


class Listings:
    """The listings of one account; each reply is held to its contract."""

    def __init__(self, world: Any) -> None:
        self.world = world

    def get(self, path: str, **query: Any) -> Any:
        target = f"/client/v4/accounts/{self.world.id}/ai/{path}"
        target += f"?{urlencode(query)}" if query else ""
        reply = self.world.http.get(target)
        exchange = exchange_of("GET", target, b"")
        assert exchange is not None
        assert exchange.check_reply(reply.status_code, reply.headers["content-type"], reply.content) is None
        return reply

    def page(self, **query: Any) -> Any:
        reply = self.get("models/search", **query)
        assert reply.status_code == 200
        return reply.json()

    def names(self, **query: Any) -> list[str]:
        return [entry["name"] for entry in self.page(per_page=1000, **query)["result"]]


@pytest.fixture
def listings(world: Any) -> Listings:
    return Listings(world)


def test_a_model_is_listed_as_its_card_says_and_without_its_schema(listings: Listings) -> None:
    (entry,) = listings.page(search="bge-base")["result"]
    assert entry.pop("description")
    assert entry["task"].pop("description")
    assert json.dumps(entry) == json.dumps(
        {
            "id": "429b9e8b-d99e-44de-91ad-706cf8183658",
            "source": 1,
            "name": BASE,
            "task": {"id": EMBEDDINGS, "name": "Text Embeddings"},
            "tags": [],
            "properties": [
                {"property_id": "async_queue", "value": "true"},
                {
                    "property_id": "price",
                    "value": [{"unit": "per M input tokens", "price": 0.067, "currency": "USD"}],
                },
                {"property_id": "max_input_tokens", "value": "512"},
                {"property_id": "output_dimensions", "value": "768"},
            ],
        }
    )


def test_keys_come_in_the_order_of_the_published_cards(listings: Listings) -> None:
    page = listings.page(per_page=3)
    assert list(page) == ["result", "result_info", "success", "errors", "messages"]
    for entry in page["result"]:
        assert list(entry) == ["id", "source", "name", "description", "task", "tags", "properties"]


def test_a_text_model_s_properties_are_strings_but_for_its_prices(listings: Listings) -> None:
    (entry,) = listings.page(search="llama-3.3-70b-instruct-fp8-fast")["result"]
    told = {each["property_id"]: each["value"] for each in entry["properties"]}
    assert told == {
        "async_queue": "true",
        "context_window": "24000",
        "price": [
            {"unit": "per M input tokens", "price": 0.29, "currency": "USD"},
            {"unit": "per M output tokens", "price": 2.25, "currency": "USD"},
        ],
        "function_calling": "true",
    }


def test_pages_follow_one_another_until_one_is_empty(listings: Listings) -> None:
    everything = listings.names()
    found: list[str] = []
    for number in range(1, 1000):
        page = listings.page(page=number, per_page=7)
        assert page["result_info"] == {
            "count": len(page["result"]),
            "page": number,
            "per_page": 7,
            "total_count": len(everything),
        }
        if not page["result"]:
            break
        found += (entry["name"] for entry in page["result"])
    assert found == everything == sorted(everything)
    assert number == -(-len(everything) // 7) + 1


def test_a_page_has_a_hundred_models_unless_told_otherwise(listings: Listings) -> None:
    info = listings.page()["result_info"]
    assert (info["page"], info["per_page"]) == (1, 100)
    assert info["count"] == min(100, info["total_count"]) > 60


@pytest.mark.parametrize("bad", ["0", "-1", "abc", "1.5", "", "1e3", "²", "9" * 40])
def test_a_page_that_is_no_number_counts_as_not_asked_for(listings: Listings, bad: str) -> None:
    plain = listings.page()
    assert listings.page(page=bad) == plain
    assert listings.page(per_page=bad) == plain


def test_the_farthest_page_is_empty(listings: Listings) -> None:
    page = listings.page(page=999_999_999_999_999, per_page=999_999_999_999_999)
    assert page["result"] == []
    assert page["result_info"]["count"] == 0


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"search": "bge-small"}, ["@cf/baai/bge-small-en-v1.5"]),
        ({"search": "BGE-SMALL"}, ["@cf/baai/bge-small-en-v1.5"]),
        ({"search": "bge", "task": "Text Classification"}, ["@cf/baai/bge-reranker-base"]),
        ({"search": "bge-m3", "task": "text embeddings"}, [M3]),
        ({"search": "bge-m3", "task": EMBEDDINGS}, [M3]),
        ({"search": "bge-m3", "task": "Text"}, []),
        ({"author": "pfnet"}, ["@cf/pfnet/plamo-embedding-1b"]),
        ({"author": "PFNET"}, ["@cf/pfnet/plamo-embedding-1b"]),
        ({"author": "pfn"}, []),
        ({"search": "m2m100", "source": "1"}, ["@cf/meta/m2m100-1.2b"]),
        ({"search": "m2m100", "source": "2"}, []),
        ({"search": "m2m100", "source": "x"}, []),
        ({"search": "nothing is called so"}, []),
        ({"search": "bge-m3", "unknown": "key"}, [M3]),
    ],
    ids=str,
)
def test_a_filter_leaves_the_models_that_fit(
    listings: Listings, query: dict[str, str], expected: list[str]
) -> None:
    assert listings.names(**query) == expected


def test_descriptions_are_searched_too(listings: Listings) -> None:
    words = models()[M3].description.split()[:3]
    assert M3 in listings.names(search=" ".join(words).upper())


def test_experimental_models_can_be_hidden(listings: Listings) -> None:
    beta = {card.name for card in models().values() if card.beta}
    shown, left = listings.names(), listings.names(hide_experimental="true")
    assert set(shown) - set(left) == beta & set(shown) != set()
    assert listings.names(hide_experimental="false") == shown


def test_a_schema_is_that_of_the_card(listings: Listings) -> None:
    for name in (M3, "@cf/meta/llama-3.3-70b-instruct-fp8-fast"):
        reply = listings.get("models/schema", model=name)
        assert list(reply.json()["result"]) == ["input", "output"]
        card = models()[name]
        assert json.dumps(reply.json()["result"]["input"]) == json.dumps(card.input_schema)
        assert json.dumps(reply.json()["result"]["output"]) == json.dumps(card.output_schema)


@pytest.mark.parametrize("query", [{"model": "@cf/nobody/knows-this"}, {"model": "bge-m3"}, {}], ids=str)
def test_a_schema_of_no_model_is_refused(listings: Listings, query: dict[str, str]) -> None:
    reply = listings.get("models/schema", **query)
    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (404, 6002)


def test_each_task_is_listed_once_as_models_have_it(listings: Listings) -> None:
    tasks = listings.get("tasks/search").json()["result"]
    assert {task["id"]: task["name"] for task in tasks} == {
        card.task_id: card.task for card in models().values()
    }
    assert [list(task) for task in tasks] == [["id", "name", "description"]] * len(tasks)
    assert all(task["description"] for task in tasks)
    of_models = {json.dumps(entry["task"]) for entry in listings.page(per_page=1000)["result"]}
    assert of_models <= {json.dumps(task) for task in tasks}


def test_each_author_is_listed_once_and_has_models(listings: Listings) -> None:
    authors = listings.get("authors/search").json()["result"]
    names = [author["name"] for author in authors]
    assert names == sorted(set(names))
    assert {"baai", "meta", "openai"} <= set(names)
    assert listings.names(author="baai") == [name for name in listings.names() if "/baai/" in name]


@pytest.mark.parametrize("path", ["finetunes", "finetunes/public"])
def test_there_are_no_finetunes(listings: Listings, path: str) -> None:
    assert listings.get(path).json()["result"] == []


@pytest.mark.parametrize(
    "path", ["models/search", "models/schema", "tasks/search", "authors/search", "finetunes"]
)
def test_a_listing_is_got_and_not_posted(listings: Listings, path: str) -> None:
    world = listings.world
    reply = world.http.post(f"/client/v4/accounts/{world.id}/ai/{path}", content=b"{}")
    assert (reply.status_code, reply.json()["errors"]) == (
        405,
        [{"code": 7001, "message": "POST not supported for requested URI."}],
    )


@pytest.mark.parametrize(
    "path", ["models/search", "models/schema", "tasks/search", "authors/search", "finetunes"]
)
def test_a_rule_fails_a_listing(listings: Listings, path: str) -> None:
    listings.world.rule({"error": "capacity"}, {"operation": "models"}, times=1)
    assert listings.get(path).status_code == 429
    assert listings.get(path, model=M3).status_code == 200


def test_the_same_listing_is_the_same_bytes(listings: Listings, other_world: Any) -> None:
    first = listings.get("models/search", per_page=50).content
    assert listings.get("models/search", per_page=50).content == first
    assert Listings(other_world).get("models/search", per_page=50).content == first


def test_a_deprecated_model_is_hidden_after_its_day_and_shown_for_three_months_if_asked_for() -> None:
    name = "@cf/moonshotai/kimi-k2.5"
    assert models()[name].deprecated_on == "2026-05-30"

    def shown(day: str, **query: str) -> bool:
        now = datetime.fromisoformat(f"{day}T23:59:59+00:00").timestamp()
        return [entry["name"] for entry in listed("search", {"search": name, **query}, now).result] == [name]

    assert [shown(day) for day in ("2026-01-01", "2026-05-30", "2026-05-31")] == [True, True, False]
    days = ("2026-01-01", "2026-05-31", "2026-08-30", "2026-08-31", "2027-05-31")
    assert [shown(day, include_deprecated="true") for day in days] == [True, True, True, False, False]


def test_sources_are_those_of_the_names() -> None:
    for source, start in (("1", "@cf/"), ("2", "@hf/")):
        names = [
            entry["name"] for entry in listed("search", {"source": source, "per_page": "999"}, AT).result
        ]
        assert names
        assert all(name.startswith(start) for name in names)


def test_every_model_has_an_id_of_its_own_and_only_texts_for_properties() -> None:
    entries = listed("search", {"per_page": "999"}, AT).result
    assert len({entry["id"] for entry in entries}) == len(entries) > 90
    for entry in entries:
        for told in entry["properties"]:
            assert isinstance(told["value"], list if told["property_id"] == "price" else str), entry["name"]


KEYS = ["search", "task", "author", "source", "hide_experimental", "include_deprecated", "page", "per_page"]
VALUES = st.sampled_from(["1", "2", "3", "meta", "baai", "true", "bge", "Text Embeddings", "x"]) | st.text()


@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_whatever_is_asked_a_page_is_a_part_of_what_fits(query: dict[str, str]) -> None:
    page = listed("search", query, AT)
    filters = {key: value for key, value in query.items() if key not in {"page", "per_page"}}
    fitting = listed("search", {**filters, "per_page": "999"}, AT).result
    assert page.info is not None
    start = (page.info["page"] - 1) * page.info["per_page"]
    assert page.result == fitting[start : start + page.info["per_page"]]
    assert page.info["count"] == len(page.result)
    assert page.info["total_count"] == len(fitting)
