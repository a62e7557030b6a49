"""The suite: a pytest package that holds any target to the contract. `workersai-verify` runs it."""
