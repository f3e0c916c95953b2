"""The messages of one run that the model is shown."""

from __future__ import annotations

import inspect
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from callslip._base.failure import is_failure, message_of
from callslip._base.options import check_called_with
from callslip.errors import UsageError
from callslip.history._exchange import Exchange, HistoryPolicy, bare
from callslip.history._summary import Summarize
from callslip.models._context import estimate
from callslip.models._reply import Message, Messages
from callslip.parts import File
from callslip.tools._callable import is_async

__all__ = ["Cut", "History", "Transcript", "check_policy"]


@dataclass(frozen=True, slots=True)
class Cut:
    """The part of a run that the model is shown no longer.

    Attributes:
        exchanges: The number of the oldest exchanges that are left out.
        results: The number of the oldest exchanges that are left out or shown without results.
        summary: The text that is shown in place of those that are left out; `None` for none.
    """

    exchanges: int = 0
    results: int = 0
    summary: str | None = None


class Transcript:
    """The messages of one run as exchanges. Each message is read only once.

    Args:
        short: Returns the text of the message at a position without loaded results; `None` if it
            has none, or only very short ones.
        examples: The number of messages of the example, after the prompt.
        lists: Whether messages end with a list of tickets. Default false.
        count: Returns the number of tokens of a message. Default: an estimate.

    Attributes:
        opening: The messages before the first reply.
        exchanges: The exchanges, oldest first.
        reply: A reply that has no outcome yet.
    """

    __slots__ = (
        "_count",
        "_head",
        "_lists",
        "_read",
        "_short",
        "_starts",
        "exchanges",
        "opening",
        "reply",
    )

    def __init__(
        self,
        short: Callable[[int], str | None],
        *,
        examples: int = 0,
        lists: bool = False,
        count: Callable[[str], int] = estimate,
    ) -> None:
        self._short = short
        self._count = count
        self._lists = lists
        self._head = 1 + examples
        self._read = 0
        # The positions of the replies.
        self._starts: list[int] = []
        self.opening: list[Message] = []
        self.exchanges: list[Exchange] = []
        self.reply: Message | None = None

    def read(self, messages: Messages) -> list[Message]:
        """Read the messages that are new, and return them.

        Args:
            messages: All messages of the run: those of the last call, and later ones.
        """
        fresh = [messages[position] for position in range(self._read, len(messages))]
        for position, message in enumerate(fresh, self._read):
            self._take(message, position)
        self._read = len(messages)
        return fresh

    def forget(self) -> None:
        """Read all messages again: the results of the last one were cut."""
        self._read = 0
        self._starts.clear()
        self.opening, self.exchanges, self.reply = [], [], None

    def exchange_of(self, position: int) -> int | None:
        """Return the exchange with the message at a position; `None` if none has it."""
        at = bisect_right(self._starts, position) - 1
        return at if 0 <= at < len(self.exchanges) else None

    def show(self, cut: Cut, pinned: int | None = None) -> list[Message]:
        """Return the messages that are left of a cut.

        Args:
            cut: The cut.
            pinned: An exchange that is shown all the same.
        """
        kept = [
            bare(one) if position < cut.results else one
            for position, one in enumerate(self.exchanges[cut.exchanges :], cut.exchanges)
        ]
        left_out = cut.exchanges
        if pinned is not None and pinned < cut.exchanges:
            kept.insert(0, bare(self.exchanges[pinned]))
            left_out -= 1
        return self._join(self.opened(note(left_out, cut.summary)), kept)

    def show_only(self, kept: Sequence[Exchange]) -> list[Message]:
        """Return the messages of some exchanges alone."""
        return self._join(self.opened(note(len(self.exchanges) - len(kept))), kept)

    def opened(self, words: str) -> list[Message]:
        """Return the messages before the first reply, with a note at the end."""
        head, asked = self.opening[: self._head], self.opening[self._head :]
        opened = _joined(asked)
        if words:
            text, ticket_list = opened["content"], ""
            if self._lists and LIST in text:
                # The list stays last, as the prompt describes it. JSON contains no such line.
                before, mark, after = text.rpartition(LIST)
                text, ticket_list = before, mark + after
            opened = {**opened, "content": f"{text}\n\n{words}{ticket_list}"}
        return [*head, opened]

    def _join(self, opened: list[Message], kept: Sequence[Exchange]) -> list[Message]:
        for one in kept:
            opened += (one.reply, one.outcome)
        if self.reply is not None:
            opened.append(self.reply)
        return opened

    def _take(self, message: Message, position: int) -> None:
        if position < self._head:
            self.opening.append(message)
        elif message["role"] == "assistant":
            self.reply = message
            self._starts.append(position)
        elif self.reply is not None:
            short = self._short_message(message, position)
            self.exchanges.append(Exchange(self.reply, message, short, _count=self._count))
            self.reply = None
        elif not self.exchanges:
            self.opening.append(message)
        else:
            # The model was asked again before it replied: at a time limit, or after a crash.
            last = self.exchanges[-1]
            short = self._short_message(message, position)
            if last.short is not None or short is not None:
                short = _joined([last.short or last.outcome, short or message])
            outcome = _joined([last.outcome, message])
            self.exchanges[-1] = Exchange(last.reply, outcome, short, _count=self._count)

    def _short_message(self, message: Message, position: int) -> Message | None:
        text = self._short(position)
        if text is None:
            return None
        # Those of results go with their results.
        said = [part for part in message.get("parts", ()) if part._part.is_of_user]
        return _message(text, said)


class History:
    """The messages of one run that a policy shows the model. Each message is read only once.

    Args:
        policy: The policy that chooses the exchanges.
        short: Returns the text of the message at a position without loaded results; `None` if it
            has none, or only very short ones.
        examples: The number of messages of the example, after the prompt.
        tickets: Returns the list of all tickets, if messages end with a list that leaves out the
            tickets of earlier messages (ticket).
        count: Returns the number of tokens of a message. Default: an estimate.
    """

    __slots__ = ("_policy", "_tickets", "_transcript")

    def __init__(
        self,
        policy: HistoryPolicy,
        short: Callable[[int], str | None],
        *,
        examples: int = 0,
        tickets: Callable[[], str] | None = None,
        count: Callable[[str], int] = estimate,
    ) -> None:
        self._policy = policy
        self._tickets = tickets
        self._transcript = Transcript(
            short, examples=examples, lists=tickets is not None, count=count
        )

    def choose(self, messages: Messages) -> Messages:
        """Return the messages that the model is shown.

        Args:
            messages: All messages of the run: those of the last call, and later ones.

        Returns:
            The chosen messages; `messages` itself if nothing is left out.

        Raises:
            UsageError: The policy failed, or returned something that it was not passed.
        """
        transcript = self._transcript
        transcript.read(messages)
        if not transcript.exchanges:
            return messages
        every = tuple(transcript.exchanges)
        try:
            kept = self._policy(every)
        except BaseException as error:
            if not is_failure(error):
                raise
            text = f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
            raise UsageError(f"the policy of Agent(history=…) failed: {text}") from error
        if kept is every:
            return messages
        _check(kept, every)
        left_out = len(every) - len(kept)
        if not left_out and all(
            one.outcome is own.outcome for one, own in zip(kept, every, strict=True)
        ):
            return messages
        shown = transcript.show_only(kept)
        if left_out and transcript.reply is None and self._tickets is not None:
            # Changes since messages that are not shown must be in the list too.
            shown[-1] = _listing(shown[-1], self._tickets())
        return shown


LIST = "\n\nTickets:\n"


def _listing(message: Message, tickets: str) -> Message:
    """Return the message with another list of tickets at its end."""
    before, mark, _ = message["content"].rpartition(LIST)
    if not mark:
        return message
    return {**message, "content": f"{before}{mark}{tickets}"}


def check_policy(policy: object) -> None:
    """Check that an object is a history policy, or `Summarize`.

    Raises:
        UsageError: It is not.
    """
    if isinstance(policy, Summarize):
        return
    got = None
    if inspect.isclass(policy):
        got = f"the class {policy.__name__}"
    elif not callable(policy):
        got = type(policy).__name__
    elif is_async(policy):
        got = "an async function"
    if got is not None:
        raise UsageError(
            "expected history=KeepLast(…), or a function from all exchanges to those that are "
            f"shown: got {got}"
        )
    check_called_with("history", policy, "the exchanges")


def _check(kept: object, every: Sequence[Exchange]) -> None:
    """Check that a policy has returned some of its exchanges, in the same order."""
    at = len(every)
    # From the end, because most policies choose the last exchanges.
    for one in reversed(kept) if isinstance(kept, Sequence) else (None,):
        if isinstance(one, Exchange):
            at -= 1
            while at >= 0 and every[at].reply is not one.reply:
                at -= 1
            if at >= 0 and (one.outcome is every[at].outcome or one.outcome is every[at].short):
                continue
        raise UsageError(
            "expected the history policy to return exchanges of its argument, in the same order, "
            "each as it is or its without_results(): got something else"
        )


def _joined(messages: Sequence[Message]) -> Message:
    if len(messages) == 1:
        return messages[0]
    text = "\n\n".join(one["content"] for one in messages)
    return _message(text, [part for one in messages for part in one.get("parts", ())])


def _message(text: str, parts: list[File]) -> Message:
    """Return a message of the user, or of the runtime in the user's place."""
    message: Message = {"role": "user", "content": text}
    return {**message, "parts": parts} if parts else message


def note(left_out: int, summary: str | None = None) -> str:
    """Return the words for exchanges that are left out; an empty text if there are none."""
    if not left_out:
        return ""
    replies = "1 earlier reply and its outcome are"
    if left_out > 1:
        replies = f"{left_out} earlier replies and their outcomes are"
    if summary is None:
        return f"[{replies} left out here.]"
    return f"[{replies} left out here. This is a summary of them:]\n{summary}"
