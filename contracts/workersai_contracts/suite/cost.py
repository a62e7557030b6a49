"""What a run of the suite may cost, reckoned before it starts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from workersai_contracts.exchange import LLAMA, RUN, SMALL
from workersai_contracts.exchanges import EXCHANGES, LIFECYCLES
from workersai_contracts.suite.wire import estimated_neurons

if TYPE_CHECKING:
    from workersai_contracts.target import Target

# What the probes and the other tests send, beside the exchanges and lifecycles: a few texts, and two prompts.
_OTHER = [(SMALL, {"text": ["a"] * 101})] * 3 + [(LLAMA, {"prompt": "Say yes."})] * 4


def estimated_run() -> float:
    """Neurons that a whole run may cost. Fact: `limits.prices`."""
    sent = [(exchange.model, exchange.body) for exchange in EXCHANGES]
    sent += [(lifecycle.model, {"requests": list(lifecycle.requests)}) for lifecycle in LIFECYCLES] * 2
    return sum(estimated_neurons(RUN + name, json.dumps(body).encode()) for name, body in [*sent, *_OTHER])


def told_cost(target: Target) -> str:
    """What a run against a target that costs may come to, in one line for who pays."""
    return (
        f"workersai-verify: the live service at {target.root}, about {estimated_run():.0f} neurons, "
        f"at most {target.budget:g} (--budget); batches may take minutes"
    )
