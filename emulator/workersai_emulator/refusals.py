"""A refusal: the service's own no, raised once as data and rendered by each dialect in its own form."""

from __future__ import annotations

from workersai_contracts import ErrorRow, error


class Refused(Exception):
    """The request is refused, with a row of the error catalogue and what fills its description.

    `retry_after`, in seconds, asks the dialect for a Retry-After header.
    """

    def __init__(
        self, row: ErrorRow | str | int, *, retry_after: float | None = None, **params: object
    ) -> None:
        self.row = row if isinstance(row, ErrorRow) else error(row)
        self.description = self.row.describe(**params)
        self.retry_after = retry_after
        super().__init__(f"{self.row.code}: {self.description}")

    def message(self, exchange_id: str | None = None) -> str:
        """The message of Workers AI's own envelope, ended by the exchange's id where the row has it so.

        Fact: `env.ai`.
        """
        title = "" if self.row.title is None else f"{self.row.title}: "
        ending = f" ({exchange_id})" if exchange_id is not None and self.row.names_request else ""
        return f"AiError: {title}{self.description}{ending}"


def refused_input(complaint: str) -> Refused:
    """A refusal of a body that is not the model's input, with the validator's words. Fact: `input.text`."""
    return Refused("input.text", complaint=f"Error: {complaint}")
