"""Bodies that come close to a schema, and schemas that come close to what model cards might say."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

_percent = st.integers(1, 100)
_NUMBERS = st.sampled_from(
    [0, 1, -1, 2, 5, 6, 50, 51, 99, 256, 9999999999, 10000000000, 2**53 + 1, 10**25, 10**400]
)
_FRACTIONS = st.sampled_from(
    [1.0, 3.0, -0.0, 0.1, 0.5, 0.001, 1e-7, 1.5e-9, 123456.789, 1e20, 1e21, 1.25e22, 5e-324]
)
_PLAIN_TEXTS = (
    "a mean cls max json_object json é 😀 😀😀 / 0 text data:image/png;base64,AA dat call12345 aaaa-aaaa"
)
_TEXTS = st.sampled_from(["", "\ud83d", "a" * 40, *_PLAIN_TEXTS.split()])
_ANY_NUMBER = _NUMBERS | _FRACTIONS | st.floats(allow_nan=False, allow_infinity=False)
_ATOMS = st.one_of(st.none(), st.booleans(), _ANY_NUMBER, _TEXTS)
_INDEX_LIKE = "0 1 01 10 2 4294967294 4294967295 \N{ARABIC-INDIC DIGIT ONE}"
_INHERITED = "__proto__ constructor toString length a/constructor x/__proto__"
_ORDINARY = "a a/b é text requests seed type description query"
_STRANGE_KEYS = st.sampled_from(["", *_INDEX_LIKE.split(), *_INHERITED.split(), *_ORDINARY.split()])
_ARRAYS_OF_SCALARS = st.sampled_from([[], [1], ["a"], [""], [None], [True]])
_MIXED_ARRAYS = st.sampled_from(
    [
        ["a", None, {}],
        ["a", {}, None],
        [[]],
        [["a"]],
        [{}],
        [[[1, [None, {}]]]],
        [{"text": "a"}, {"text": "b"}],
        [{"text": ""}],
        [{"text": "a"}, "a"],
        [1, "a", {"text": 1}],
        [{"toString": 1}],
    ]
)
_STRANGE_ARRAYS = _ARRAYS_OF_SCALARS | _MIXED_ARRAYS
_JUNK = st.one_of(
    _ATOMS,
    _STRANGE_ARRAYS,
    st.lists(_ATOMS, max_size=3),
    st.dictionaries(_STRANGE_KEYS, _ATOMS, max_size=3),
    st.recursive(
        _ATOMS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_STRANGE_KEYS, inner, max_size=3),
        max_leaves=6,
    ),
)


def bodies(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Draw bodies that fit the schema, spoiled in no, one or many places."""
    return st.one_of([_fitting(schema, percent) for percent in (0, 2, 5, 10, 25)])


def _fitting(schema: Any, spoiled: int) -> st.SearchStrategy[Any]:
    """Build the strategy once, since to build one costs more than to draw from it."""
    fitting = _unspoiled(schema, spoiled)
    if not spoiled:
        return fitting
    return _percent.flatmap(lambda roll: _JUNK if roll <= spoiled else fitting)


def _unspoiled(schema: Any, spoiled: int) -> st.SearchStrategy[Any]:
    if not isinstance(schema, dict):
        return _JUNK
    for word in ("oneOf", "anyOf", "allOf"):
        if word in schema:
            return _arms(schema, word, spoiled)
    kind = schema.get("type", "object" if "properties" in schema else None)
    drawn = [_of_kind(kind, schema, spoiled)]
    if schema.get("enum"):
        drawn.append(st.sampled_from(schema["enum"]))
    if "const" in schema:
        drawn.append(st.just(schema["const"]))
    return st.one_of(drawn)


def _arms(schema: dict[str, Any], word: str, spoiled: int) -> st.SearchStrategy[Any]:
    around = {key: value for key, value in schema.items() if key != word}
    arms = st.one_of(
        [_fitting({**around, **arm} if isinstance(arm, dict) else arm, spoiled) for arm in schema[word]]
    )
    mixed = st.tuples(arms, arms).map(
        lambda pair: pair[0] | pair[1] if all(isinstance(one, dict) for one in pair) else pair[0]
    )
    return mixed if word == "allOf" else arms | arms | mixed


def _of_kind(kind: Any, schema: dict[str, Any], spoiled: int) -> st.SearchStrategy[Any]:
    match kind:
        case "object":
            return _objects(schema, spoiled)
        case "array":
            return st.lists(_fitting(schema.get("items"), spoiled), max_size=3)
        case "string":
            return _TEXTS
        case "integer":
            return st.integers(1, 9)
        case "number":
            return _ANY_NUMBER
        case "boolean":
            return st.booleans()
        case _:
            return _JUNK


def _objects(schema: dict[str, Any], spoiled: int) -> st.SearchStrategy[dict[str, Any]]:
    properties = schema.get("properties") or {}
    required = [name for name in schema.get("required", []) if name in properties]
    known = {name: _fitting(properties[name], spoiled) for name in properties}
    other = _fitting(schema["additionalProperties"], spoiled) if schema.get("additionalProperties") else _JUNK
    strange = st.dictionaries(_STRANGE_KEYS, other, max_size=3)
    often_strange = (
        strange
        if "additionalProperties" in schema
        else _percent.flatmap(lambda roll: strange if roll <= spoiled else st.just({}))
    )
    optional = st.lists(st.sampled_from(sorted(known)), max_size=3) if known else st.just([])

    @st.composite
    def objects(draw: Any) -> dict[str, Any]:
        names = [name for name in required if not spoiled or draw(_percent) > spoiled] + draw(optional)
        if draw(st.booleans()):
            names.reverse()
        return {name: draw(known[name]) for name in names} | draw(often_strange)

    return objects()


_NAMES = st.sampled_from(["text", "query", "type", "0", "10", "2"])
#: Only for the body's own properties: what a function inherits is not looked into.
_BODY_NAMES = _NAMES | st.sampled_from(["length", "name", "search", "constructor", "toString"])
_KINDS = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "null", "binary"])
_LIMITS = st.sampled_from([0, 1, 2, 0.5, 5, -1, 1e21])
_KEYWORDS = {
    "minLength": _LIMITS,
    "maxLength": _LIMITS,
    "minimum": _LIMITS,
    "maximum": _LIMITS,
    "exclusiveMinimum": _LIMITS,
    "exclusiveMaximum": _LIMITS,
    "multipleOf": _LIMITS,
    "minProperties": st.integers(0, 2),
    "maxProperties": st.integers(0, 3),
    "maxItems": st.just(1),
    "required": st.lists(_NAMES, max_size=2),
    "enum": st.lists(_ATOMS | _ARRAYS_OF_SCALARS, min_size=1, max_size=3),
    "const": _ATOMS,
    "default": _ATOMS,
    "pattern": st.sampled_from(
        ["[a-zA-Z0-9]{9}", "^data:*", "a+", "[0-9]", "^[o-u]+", "t o", "b?c*", "^[0-9]+$", "a$"]
    ),
}


def _around(inner: st.SearchStrategy[Any], names: st.SearchStrategy[str] = _NAMES) -> st.SearchStrategy[Any]:
    arms = st.lists(inner, min_size=1, max_size=3)
    deeper = {
        "properties": st.dictionaries(names, inner, max_size=3),
        "items": inner,
        "oneOf": arms,
        "anyOf": arms,
        "allOf": arms,
        "not": inner,
        "additionalProperties": st.just(False) | inner,
        "unevaluatedProperties": st.just(False) | inner,
    }
    some = st.sampled_from(sorted(deeper | _KEYWORDS))
    return st.lists(some, max_size=4, unique=True).flatmap(
        lambda words: st.fixed_dictionaries(
            {word: (deeper | _KEYWORDS)[word] for word in words},
            optional={"type": _KINDS | st.just(["string", "null"])},
        )
    )


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Draw schemas of every keyword that the validator knows, in combinations that no card has."""
    leaf = st.booleans() | st.fixed_dictionaries(
        {}, optional={"type": _KINDS, "minLength": _LIMITS, "const": _ATOMS, "enum": _KEYWORDS["enum"]}
    )
    return _around(st.recursive(leaf, _around, max_leaves=5), _BODY_NAMES)
