"""What a model is called with: messages, and the keywords of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from callslip._base.options import check_type, check_whole, checked_texts, shown
from callslip.errors import UsageError

__all__ = ["check_create", "check_messages", "check_offered"]


def check_create(create: object, method: str) -> None:
    """Check that a model is made from the method of a client, and not from the client.

    Raises:
        UsageError: It is no function.
    """
    if not callable(create):
        raise UsageError(
            f"expected the method of a client: got {shown(create)}; pass client.{method}, or use "
            "as_model(client, model=…)"
        )


def check_messages(messages: object) -> None:
    """Check what a program calls a model with. Only the first message is looked at.

    Raises:
        UsageError: It is no list of messages.
    """
    hint = ""
    if isinstance(messages, str):
        hint = '; pass [{"role": "user", "content": text}]'
    elif isinstance(messages, Mapping):
        hint = "; pass it in a list"
    elif isinstance(messages, Sequence) and (not messages or _is_message(messages[0])):
        return
    raise UsageError(
        'expected messages as a list of dicts with "role" and "content": got '
        f"{shown(messages)}{hint}"
    )


def check_offered(options: Mapping[str, object]) -> None:
    """Check those options that have the meaning of a run's. `None` is always right.

    Raises:
        UsageError: One of them has a wrong value.
    """
    stop, seed = options.get("stop"), options.get("seed")
    if stop is not None:
        checked_texts("stop", stop)
    if seed is not None:
        check_type("seed", seed, int, "a whole number or None")
    check_whole("max_tokens", options.get("max_tokens"), 1, none="the default of the model")


def _is_message(message: object) -> bool:
    return isinstance(message, Mapping) and "role" in message and "content" in message
