"""The private native module: parsers, ticket store and the run machine."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, final

from callslip._protocols import ProtocolName
from callslip._scripts.engine import OutcomeKind
from callslip.models._bounds import Bounds

__version__: str

FinishReason: TypeAlias = Literal["stop", "length", "unknown"]
_Claim: TypeAlias = tuple[str, int, str, str | None, int, bool, str | None, str | None]
StopReason: TypeAlias = Literal["finished", "limit", "violations", "model_error", "cancelled"]

@final
class Usage:
    """What replies cost, as the model client reports it."""

    def __new__(
        cls, input_tokens: int, output_tokens: int, cached_tokens: int, cost: float | None
    ) -> Usage: ...
    @property
    def input_tokens(self) -> int:
        """Tokens of the messages."""

    @property
    def output_tokens(self) -> int:
        """Tokens of the replies."""

    @property
    def cached_tokens(self) -> int:
        """Tokens of the messages that came from the client's cache."""

    @property
    def cost(self) -> float:
        """In the client's own currency; 0.0 if it reports none."""

    @property
    def priced(self) -> bool:
        """Whether a cost is reported."""

@final
class TicketRow:
    """One ticket of a run."""

    @property
    def run_id(self) -> str:
        """The run that opened it."""

    @property
    def id(self) -> str:
        """`T1`, `T2`, … in the order of opening."""

    @property
    def kind(self) -> Literal["tool_call", "task"]:
        """A call of a tool, or a task for another run."""

    @property
    def description(self) -> str:
        """The purpose, in the model's words, or the call itself."""

    @property
    def status(self) -> Literal["IN_PROGRESS", "COMPLETED"]:
        """`COMPLETED` once it has an outcome."""

    @property
    def tool(self) -> str:
        """The tool's name; `DELEGATE` for that move."""

    @property
    def call_id(self) -> str | None:
        """The model's own name for the call (chatty)."""

    @property
    def awaits_result(self) -> bool:
        """Whether it waits for a result from outside."""
    @property
    def answers(self) -> str | None:
        """The JSON Schema of that result; `None` if any JSON value is one."""
    @property
    def parked(self) -> bool:
        """Whether it awaits approval."""
    @property
    def untrusted(self) -> bool:
        """Whether its result comes from others, or was made from such a result."""

    @property
    def seal(self) -> str | None:
        """Names the call with its arguments, while it awaits approval; `None` in a list."""

    @property
    def attempts(self) -> int:
        """How many attempts were made, the one that is waited for among them."""

    @property
    def parts(self) -> list[Part]:
        """The images and files of its result."""

    @property
    def approval_reason(self) -> str | None:
        """The reason why it needs approval, in the program's words; `None` without one."""

    @property
    def outcome(self) -> Literal["ok", "error", "retry", "in_doubt", "denied", "cancelled"] | None:
        """How it ended; `None` while it is in progress."""

    @property
    def text(self) -> str | None:
        """The result as JSON, or the message of a failure; `None` while it is in progress."""

    @property
    def turn(self) -> int:
        """The turn whose reply opened it."""

    @property
    def opened_at(self) -> float:
        """Unix seconds."""

    @property
    def completed_at(self) -> float | None:
        """Unix seconds; `None` while it is in progress."""

    @property
    def arguments(self) -> str | None:
        """The checked arguments as JSON; `None` in logs compacted before version 3."""

    @property
    def influenced(self) -> list[str]:
        """Ids of the untrusted results that the model had read."""

@final
class RunRow:
    """One run of a store."""

    @property
    def run_id(self) -> str:
        """Unique among runs."""

    @property
    def agent(self) -> str:
        """The name of the agent that works on it."""

    @property
    def owner(self) -> str | None:
        """Whose data it is; `None` for nobody's."""

    @property
    def key(self) -> str | None:
        """By what its caller knows it; `None` without a key."""

    @property
    def protocol(self) -> ProtocolName | None:
        """The protocol of its replies; `None` until it has begun."""

    @property
    def task(self) -> str:
        """The text of the user's task."""

    @property
    def parent_run(self) -> str | None:
        """The run in whose call it was started; `None` for a root run."""

    @property
    def parent_ticket(self) -> str | None:
        """The ticket of that call."""

    @property
    def status(self) -> Literal["running", "finished"]:
        """`running` until it has ended, also while no driver works on it."""

    @property
    def stop_reason(self) -> StopReason | None:
        """Why it ended; `None` until then."""

    @property
    def error(self) -> str | None:
        """What failed, if something did."""

    @property
    def turns(self) -> int:
        """The number of requests to the model."""

    @property
    def violations(self) -> int:
        """The number of replies that broke the protocol."""

    @property
    def usage(self) -> Usage:
        """The sum over its replies."""

    @property
    def started_at(self) -> float:
        """Unix seconds."""

    @property
    def updated_at(self) -> float:
        """Unix seconds of its last event."""

    @property
    def finished_at(self) -> float | None:
        """Unix seconds; `None` until it has ended."""

@final
class Ending:
    """How a run ended."""

    @property
    def reason(self) -> StopReason:
        """Why it ended."""

    @property
    def value(self) -> Any:
        """The value it was finished with; `None` if it has none."""

    @property
    def success(self) -> bool | None:
        """The success that a react reply reports; `None` in the other protocols."""

    @property
    def error(self) -> str | None:
        """What failed, if something did."""

    @property
    def limit(self) -> str | None:
        """The name of the limit that was reached, in the last turn or at the end."""

    @property
    def at_calls(self) -> bool:
        """Whether the value is the checked calls at which the run has ended, and not an answer."""

@final
class Shortened:
    """The part of a conversation that the model is shown no longer."""

    @property
    def exchanges(self) -> int:
        """The number of the oldest exchanges that are left out."""

    @property
    def results(self) -> int:
        """The number of the oldest exchanges that are left out or shown without results."""

    @property
    def summary(self) -> str | None:
        """The text that is shown in place of the exchanges that are left out."""

@final
class OpenTask:
    """A task that another run works on."""

    @property
    def ticket(self) -> int:
        """The number of its ticket."""

    @property
    def tool(self) -> str:
        """The tool that was called; `DELEGATE` for that move."""

    @property
    def role(self) -> str | None:
        """The role of the child run (chatty)."""

@final
class Message:
    """One message of a transcript."""

    @property
    def role(self) -> Literal["system", "user", "assistant"]:
        """The author of the message."""

    @property
    def content(self) -> str:
        """The text."""

    @property
    def parts(self) -> list[Part]:
        """Images and files beside the text."""

    @property
    def items(self) -> list[dict[str, Any]] | None:
        """Its items; `None` for text (native)."""

@final
class Part:
    """An image or a file: one that was just made, or one of a run."""

    MARK: ClassVar[str]
    """What a mark begins with."""

    def __new__(cls, data: bytes, media_type: str, name: str | None) -> Part: ...
    @staticmethod
    def guess_type(data: bytes, name: str | None) -> str | None:
        """The media type of a file, by its first bytes or its name; `None` if neither says it."""

    def marked(self, mark: str) -> Part:
        """The same part, still to be placed: `mark` stands for it in a text."""

    def data(self) -> bytes:
        """Its bytes. Raises `StoreError` if its log came without them."""

    @property
    def label(self) -> str:
        """Its name in its run; its mark, or nothing, as long as it has none."""

    @property
    def is_of_user(self) -> bool:
        """Whether it came from the user of its run, and not with a result."""

    @property
    def media_type(self) -> str:
        """`image/png` and the like."""

    @property
    def name(self) -> str | None:
        """The name of its file."""

    @property
    def size(self) -> int:
        """How many bytes it has."""

    @property
    def width(self) -> int | None:
        """Pixels of an image; `None` if they can't be read."""

    @property
    def height(self) -> int | None:
        """Pixels of an image; `None` if they can't be read."""

    @property
    def sha256(self) -> str:
        """SHA-256 of its bytes, in hexadecimal digits."""

    @property
    def line(self) -> str:
        """The line that tells it to a model."""

@final
class HttpRequest:
    """The request that calls an operation."""

    @property
    def method(self) -> str:
        """In upper case."""

    @property
    def url(self) -> str:
        """The whole URL."""

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Names and values, in their order."""

    @property
    def body(self) -> bytes:
        """Empty if the request has no body."""

@final
class PromptExample:
    """An example of a reply in a prompt."""

    @property
    def line(self) -> int:
        """The line on which it begins, from 1."""

    @property
    def text(self) -> str:
        """The example."""

    @property
    def reply(self) -> Reply:
        """What is read from it."""

class Outcome:
    """How a call or a task ended. Denials and cancelled calls are made by the run itself."""

    @final
    class Ok(Outcome):
        """The result, as JSON text."""

        __match_args__: ClassVar[tuple[str, ...]] = ("json", "parts")
        def __new__(cls, json: str, parts: list[Part] = ...) -> Outcome.Ok: ...
        @property
        def json(self) -> str: ...
        @property
        def parts(self) -> list[Part]:
            """The images and files for which there are marks in the JSON."""

    @final
    class Error(Outcome):
        """It failed. The same call may be repeated if the failure is transient."""

        __match_args__: ClassVar[tuple[str, ...]] = ("message", "transient", "again", "wait")
        def __new__(
            cls,
            message: str,
            transient: bool = False,
            *,
            again: bool | None = None,
            wait: float | None = None,
        ) -> Outcome.Error: ...
        @property
        def message(self) -> str: ...
        @property
        def transient(self) -> bool: ...
        @property
        def again(self) -> bool | None:
            """Whether the runtime may make the call again; `None` if it may if transient."""

        @property
        def wait(self) -> float | None:
            """Seconds that a server asks to wait before that; `None` if it does not ask."""

    @final
    class Retry(Outcome):
        """The tool asks the model to try again."""

        __match_args__: ClassVar[tuple[str, ...]] = ("message",)
        def __new__(cls, message: str) -> Outcome.Retry: ...
        @property
        def message(self) -> str: ...

    @final
    class InDoubt(Outcome):
        """The process ended during the call, and whether it took effect is unknown."""

        __match_args__: ClassVar[tuple[str, ...]] = ("message",)
        def __new__(cls, message: str) -> Outcome.InDoubt: ...
        @property
        def message(self) -> str: ...

    @final
    class Cancelled(Outcome):
        """The run of a task was cancelled."""

        __match_args__: ClassVar[tuple[str, ...]] = ("message",)
        def __new__(cls, message: str) -> Outcome.Cancelled: ...
        @property
        def message(self) -> str: ...

class Command:
    """One thing for a driver to do."""

    @final
    class AskModel(Command):
        __match_args__: ClassVar[tuple[str, ...]] = ("turn",)
        def __new__(cls, turn: int) -> Command.AskModel: ...
        @property
        def turn(self) -> int: ...

    @final
    class CallTool(Command):
        __match_args__: ClassVar[tuple[str, ...]] = ("ticket", "tool", "arguments", "again")
        def __new__(
            cls, ticket: int, tool: str, arguments: Any, again: bool
        ) -> Command.CallTool: ...
        @property
        def ticket(self) -> int: ...
        @property
        def tool(self) -> str: ...
        @property
        def arguments(self) -> dict[str, Any]: ...
        @property
        def again(self) -> bool: ...

    @final
    class StartRun(Command):
        """Start the run of a task, or resume it."""

        __match_args__: ClassVar[tuple[str, ...]] = ("ticket", "tool", "role", "task", "again")
        def __new__(
            cls, ticket: int, tool: str, role: str | None, task: str, again: bool
        ) -> Command.StartRun: ...
        @property
        def ticket(self) -> int: ...
        @property
        def tool(self) -> str: ...
        @property
        def role(self) -> str | None: ...
        @property
        def task(self) -> str: ...
        @property
        def again(self) -> bool: ...

    @final
    class Settle(Command):
        __match_args__: ClassVar[tuple[str, ...]] = ()
        def __new__(cls) -> Command.Settle: ...

    @final
    class CheckAnswer(Command):
        __match_args__: ClassVar[tuple[str, ...]] = ("turn", "value")
        def __new__(cls, turn: int, value: object) -> Command.CheckAnswer: ...
        @property
        def turn(self) -> int: ...
        @property
        def value(self) -> Any: ...

    @final
    class CheckApproval(Command):
        __match_args__: ClassVar[tuple[str, ...]] = ("ticket", "tool", "arguments")
        def __new__(
            cls, ticket: int, tool: str, arguments: dict[str, Any]
        ) -> Command.CheckApproval: ...
        @property
        def ticket(self) -> int: ...
        @property
        def tool(self) -> str: ...
        @property
        def arguments(self) -> dict[str, Any]: ...

    @final
    class AskResult(Command):
        """Ask for a result from outside, and end the ticket at that time without one."""

        __match_args__: ClassVar[tuple[str, ...]] = ("ticket", "until")
        def __new__(cls, ticket: int, until: float | None) -> Command.AskResult: ...
        @property
        def ticket(self) -> int: ...
        @property
        def until(self) -> float | None: ...

    @final
    class AskApproval(Command):
        __match_args__: ClassVar[tuple[str, ...]] = ("ticket",)
        def __new__(cls, ticket: int) -> Command.AskApproval: ...
        @property
        def ticket(self) -> int: ...

    @final
    class Cancel(Command):
        __match_args__: ClassVar[tuple[str, ...]] = ("ticket",)
        def __new__(cls, ticket: int) -> Command.Cancel: ...
        @property
        def ticket(self) -> int: ...

    @final
    class Finish(Command):
        __match_args__: ClassVar[tuple[str, ...]] = ()
        def __new__(cls) -> Command.Finish: ...

class Delta:
    """A new part of a reply that is still arriving. Texts only grow.

    `call` is the position of a call in its block, from 0: it is always 0 in react and ticket.
    `turn` is the number of the turn in its run, from 1; `None` if the reply is of no run.
    """

    @property
    def turn(self) -> int | None: ...

    @final
    class Thoughts(Delta):
        """More of the thoughts."""

        __match_args__: ClassVar[tuple[str, ...]] = ("text", "turn")
        def __new__(cls, text: str, turn: int | None = None) -> Delta.Thoughts: ...
        @property
        def text(self) -> str: ...
        @property
        def turn(self) -> int | None: ...

    @final
    class Reasoning(Delta):
        """More of the model's reasoning: before the protocol's own reply, or beside it."""

        __match_args__: ClassVar[tuple[str, ...]] = ("text", "turn")
        def __new__(cls, text: str, turn: int | None = None) -> Delta.Reasoning: ...
        @property
        def text(self) -> str: ...
        @property
        def turn(self) -> int | None: ...

    @final
    class Text(Delta):
        """More of the text before a tool block, which may yet be a direct answer (chatty)."""

        __match_args__: ClassVar[tuple[str, ...]] = ("text", "turn")
        def __new__(cls, text: str, turn: int | None = None) -> Delta.Text: ...
        @property
        def text(self) -> str: ...
        @property
        def turn(self) -> int | None: ...

    @final
    class Answer(Delta):
        """More of the final answer."""

        __match_args__: ClassVar[tuple[str, ...]] = ("text", "turn")
        def __new__(cls, text: str, turn: int | None = None) -> Delta.Answer: ...
        @property
        def text(self) -> str: ...
        @property
        def turn(self) -> int | None: ...

    @final
    class CallId(Delta):
        """A call's own id is complete, or was given to it (chatty)."""

        __match_args__: ClassVar[tuple[str, ...]] = ("call", "id", "turn")
        def __new__(cls, call: int, id: str, turn: int | None = None) -> Delta.CallId: ...
        @property
        def call(self) -> int: ...
        @property
        def id(self) -> str: ...
        @property
        def turn(self) -> int | None: ...

    @final
    class Tool(Delta):
        """A call's tool name or route is complete."""

        __match_args__: ClassVar[tuple[str, ...]] = ("call", "name", "turn")
        def __new__(cls, call: int, name: str, turn: int | None = None) -> Delta.Tool: ...
        @property
        def call(self) -> int: ...
        @property
        def name(self) -> str: ...
        @property
        def turn(self) -> int | None: ...

    @final
    class Arguments(Delta):
        """More of a call's arguments, as the raw text of their JSON."""

        __match_args__: ClassVar[tuple[str, ...]] = ("call", "text", "turn")
        def __new__(cls, call: int, text: str, turn: int | None = None) -> Delta.Arguments: ...
        @property
        def call(self) -> int: ...
        @property
        def text(self) -> str: ...
        @property
        def turn(self) -> int | None: ...

    @final
    class CallReady(Delta):
        """A call is complete while the rest of its block is still arriving (chatty)."""

        __match_args__: ClassVar[tuple[str, ...]] = ("call", "turn")
        def __new__(cls, call: int, turn: int | None = None) -> Delta.CallReady: ...
        @property
        def call(self) -> int: ...
        @property
        def turn(self) -> int | None: ...

    @final
    class TicketId(Delta):
        """The id of the ticket to await or load is complete."""

        __match_args__: ClassVar[tuple[str, ...]] = ("id", "turn")
        def __new__(cls, id: str, turn: int | None = None) -> Delta.TicketId: ...
        @property
        def id(self) -> str: ...
        @property
        def turn(self) -> int | None: ...

@final
class ToolCall:
    """One tool call as the model wrote it."""

    @property
    def call_id(self) -> str | None:
        """The model's own name for the call; `None` without one (ticket, react)."""

    @property
    def tool(self) -> str:
        """The name of the tool; in the ticket protocol the route, as the model wrote it."""

    @property
    def arguments(self) -> Any:
        """The arguments, before they are checked against the tool."""

    @property
    def description(self) -> str | None:
        """What the call is for, in the words of the model (ticket); else `None`."""

class Move:
    """The move of one reply."""

    @final
    class Finish(Move):
        """The run is over."""

        __match_args__: ClassVar[tuple[str, ...]] = ("value", "success")
        def __new__(cls, value: Any, success: bool | None) -> Move.Finish: ...
        @property
        def value(self) -> Any: ...
        @property
        def success(self) -> bool | None: ...

    @final
    class Call(Move):
        """Tool calls, side by side."""

        __match_args__: ClassVar[tuple[str, ...]] = ("calls",)
        def __new__(cls, calls: Sequence[ToolCall]) -> Move.Call: ...
        @property
        def calls(self) -> list[ToolCall]: ...

    @final
    class Delegate(Move):
        """A task for a child run."""

        __match_args__: ClassVar[tuple[str, ...]] = ("task",)
        def __new__(cls, task: str) -> Move.Delegate: ...
        @property
        def task(self) -> str: ...

    @final
    class Await(Move):
        """Sleep until a ticket is completed."""

        __match_args__: ClassVar[tuple[str, ...]] = ("ticket_id",)
        def __new__(cls, ticket_id: str) -> Move.Await: ...
        @property
        def ticket_id(self) -> str: ...

    @final
    class Load(Move):
        """Put a completed ticket's result before the model, from a byte of it on."""

        __match_args__: ClassVar[tuple[str, ...]] = ("ticket_id", "offset")
        def __new__(cls, ticket_id: str, offset: int = 0) -> Move.Load: ...
        @property
        def ticket_id(self) -> str: ...
        @property
        def offset(self) -> int: ...

@final
class Repair:
    """A departure from the syntax that was repaired."""

    @property
    def code(self) -> str:
        """The stable name, such as `trailing_comma`."""

    @property
    def span(self) -> tuple[int, int]:
        """The place in the reply: first byte and the byte after the last, in UTF-8."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Violation:
    """One breach of the protocol, with its place in the reply."""

    @property
    def code(self) -> str:
        """The stable name, such as `unknown_argument`."""

    @property
    def message(self) -> str:
        """What was expected and what came, in one line."""

    @property
    def span(self) -> tuple[int, int] | None:
        """The place in the reply: first byte and the byte after the last, in UTF-8.

        `None` if no single place is at fault.
        """

    @property
    def line(self) -> int | None:
        """The line of that place, from 1; `None` without one."""

    @property
    def column(self) -> int | None:
        """The column of that place in characters, from 1; `None` without one."""

    @property
    def pointer(self) -> str | None:
        """The place in the JSON of the reply, as a JSON pointer; `None` without one."""

    @property
    def expected(self) -> str | None:
        """The smallest correct form, or the schema; `None` if there is none to show."""

    @property
    def found(self) -> str | None:
        """What came instead, shortened; `None` if there is nothing to show."""

    @property
    def hint(self) -> str | None:
        """What the model can do; `None` without one."""

    def _repr_mimebundle_(self, **_options: object) -> dict[str, Any]: ...

@final
class Reply:
    """One reply, read. Either `move` or `violation` is there."""

    @property
    def raw(self) -> str:
        """The whole text that was read."""

    @property
    def thoughts(self) -> str | None:
        """The thoughts of ticket and react, or the reasoning block of chatty; else `None`."""

    @property
    def reasoning(self) -> str | None:
        """The reasoning block in front of a reply of ticket or react; else `None`."""

    @property
    def narration(self) -> str | None:
        """The text before a tool block (chatty); else `None`."""

    @property
    def move(self) -> Move | None:
        """The move; `None` if the reply breaks the protocol."""

    @property
    def violation(self) -> Violation | None:
        """What is wrong with the reply; `None` if nothing is."""

    @property
    def repairs(self) -> list[Repair]:
        """The repairs, in the order of the text."""

    @property
    def discarded(self) -> list[tuple[int, int]]:
        """The places of text that was read and dropped, in bytes, as `Repair.span`."""

@final
class PartialCall:
    """One call of a reply that is still arriving.

    It grows with its reader: each attribute says what has come by the time it is read.
    """

    @property
    def call_id(self) -> str | None:
        """The model's own name for the call, once it is complete (chatty)."""

    @property
    def tool(self) -> str | None:
        """The tool's name, or the route in the ticket protocol, once it is complete."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as far as they have come.

        Always the same dict, brought up to date whenever this attribute is read. A string, list or
        dict at its end may be unfinished. Copy what you want to keep, and change nothing in it.

        Arguments that need more than reading (a fence inside their text, text inside text) stay
        empty here; `Reader.finish` has them.
        """

@final
class Snapshot:
    """What has come of a reply that is still arriving.

    Texts are those of the moment at which it was taken. JSON values are read from the reply when
    they are asked for, and go on growing with the reader.
    """

    @property
    def status(self) -> Literal["open", "complete", "doomed"]:
        """What was known of the reply."""

    @property
    def thoughts(self) -> str:
        """The thoughts."""

    @property
    def reasoning(self) -> str:
        """The reasoning in front of a reply that has thoughts of its own (ticket, react)."""

    @property
    def text(self) -> str:
        """The text before a tool block, which may yet be a direct answer (chatty)."""

    @property
    def answer(self) -> Any:
        """The final answer, `None` before it begins (ticket, react).

        A list or dict (ticket) is always the same object, brought up to date whenever this
        attribute is read.
        """

    @property
    def calls(self) -> list[PartialCall]:
        """The calls whose tool or id is known. Always the same list, brought up to date here."""

    @property
    def ticket_id(self) -> str | None:
        """The id of the ticket to await or load, once it is complete (ticket)."""

@final
class Reader:
    """Reads one reply that arrives in chunks."""

    def push(self, chunk: str | bytes) -> tuple[list[Delta], Literal["open", "complete", "doomed"]]:
        """Read the next piece of the reply.

        Args:
            chunk: The piece, as text or as bytes of UTF-8, which may end inside a character.

        Returns:
            What is new, and the state of the reply: `"open"`, `"complete"` (the move is there,
            nothing that may follow changes it, and the stream can be stopped), or `"doomed"` (it
            can't become valid any more).

        Raises:
            UsageError: The chunk is neither text nor bytes, or `finish` was called before.
        """

    def snapshot(self) -> Snapshot:
        """Return what has come of the reply, in constant time.

        Reading all of it after each chunk takes time in proportion to the reply: its values are
        not parsed anew.
        """

    def finish(self, finish_reason: FinishReason | None = None) -> Reply:
        """Close the reply, read the rest, and return the whole of it, as `Protocol.parse` does.

        Args:
            finish_reason: Why the model stopped. With `"length"` the reply is read as cut off;
                with `"unknown"` nothing is completed at its end.

        Raises:
            UsageError: `finish` was called before, or there is no such reason.
        """

@final
class Grammar:
    """One language in the forms that inference engines take."""

    @property
    def gbnf(self) -> str:
        """For llama.cpp and xgrammar."""

    @property
    def lark(self) -> str:
        """For llguidance."""

    @property
    def json_schema(self) -> str | None:
        """One object for both moves of react; `None` in the other protocols."""

    @property
    def has_blocks(self) -> bool:
        """Whether the protocol has blocks of several calls."""

    def further(self, written: str) -> str | None:
        """GBNF for the rest of a block behind a whole call: at least one more call, and its end.

        `None` if the text does not end behind a whole call, or no call may follow.
        """

    def first_name(self, written: str) -> tuple[int, int] | None:
        """Return the place of the first tool's name in a reply, in UTF-8 bytes.

        `None` without a block, or if the name is not complete.
        """

    @property
    def unruled(self) -> list[str]:
        """The tools whose schemas the grammar can't express: it takes any object for them."""

@final
class Document:
    """A document of version 3.0, 3.1 or 3.2."""

    def __new__(cls, text: bytes) -> Document: ...
    def names(self) -> list[str]: ...
    def named(self, key: str) -> list[str]: ...
    def nearest(self, key: str) -> list[str]: ...
    def select(self, include: Sequence[str], tags: Sequence[str], read_only: bool) -> list[str]: ...
    def only(self, names: Sequence[str], traits: str) -> Document: ...
    def marked(self, whole: Document, address: str | None) -> Document: ...
    def unsent(self, available: Sequence[str]) -> list[str]: ...
    def notes(self) -> list[str]: ...
    def unreadable(self) -> list[tuple[str, str]]: ...
    def faults(self) -> list[str]: ...
    def default_server(self) -> str | None: ...
    def to_json(self) -> str: ...
    def undeclared(self) -> list[tuple[str, list[str]]]: ...
    def title(self) -> str: ...
    def spec(self, name: str) -> str: ...
    def schemes(self) -> list[str]: ...
    def credentials(self, name: str, available: Sequence[str]) -> list[str]: ...
    def server(self, name: str) -> str | None: ...
    def request(
        self,
        name: str,
        arguments: str,
        server: str,
        secrets: Sequence[tuple[str, str | tuple[str, str]]],
    ) -> HttpRequest: ...
    def check_response(self, name: str, status: int, media: str, body: str) -> list[str]: ...

def json_text(text: str) -> str | None: ...
def yaml_to_json(text: bytes) -> str: ...
def read_script(code: str, python_version: str | None = None) -> str:
    """What a script declares, as JSON: `code`, `dependencies`, `names`, `requires_python`, `hints`.

    `{"refused": {"code": …, "message": …}}` where it declares what can't be, is not code, or asks
    for another Python than `python_version`.
    """

def script_hints(code: str, stderr: str, *, interactive: bool, network: bool) -> list[str]:
    """What the end of a script's stderr means for whoever wrote it.

    `interactive` is whether its questions were answered, `network` whether it had one.
    """

@final
class ToolSet:
    """Tools by name, with the checks of their arguments."""

    def __new__(cls, specs: Sequence[str], documents: Sequence[Document] = ...) -> ToolSet: ...
    @staticmethod
    def check_returns(schema: str) -> None: ...
    @staticmethod
    def delegate() -> str: ...
    def changed(self, without: Sequence[str], further: Sequence[str]) -> ToolSet: ...
    def search(self, query: str, routes: bool) -> str: ...
    def describe(self, name: str, routes: bool) -> str: ...
    def names(self) -> list[str]: ...
    def resolve_route(self, route: str) -> str: ...
    def check(self, name: str, arguments: str) -> dict[str, Any]: ...
    def sample_arguments(self, name: str) -> str | None: ...
    def __len__(self) -> int: ...

@final
class Protocol:
    """One protocol with its options."""

    def __new__(cls, name: str, options: Mapping[str, object], own: str) -> Protocol: ...
    @staticmethod
    def stored(text: str) -> Protocol: ...
    @staticmethod
    def names() -> list[str]: ...
    def returning(self, schema: str | None) -> Protocol: ...
    @property
    def answer_name(self) -> str: ...
    @property
    def name(self) -> ProtocolName: ...
    @property
    def delegates(self) -> bool: ...
    @property
    def spawns_roles(self) -> bool: ...
    @property
    def routes(self) -> bool: ...
    @property
    def answers_in_text(self) -> bool: ...
    @property
    def narrates(self) -> bool: ...
    @property
    def lists_tickets(self) -> bool: ...
    @property
    def takes_calls(self) -> bool: ...
    @property
    def runs_code(self) -> bool: ...
    @property
    def reserved_tool_name(self) -> str | None: ...
    def readable(self, role: str, content: str) -> str: ...
    @staticmethod
    def shown_reply(name: str, text: str, offsets: list[int]) -> tuple[str, list[int]]: ...
    def delegation(self, roles: Sequence[str]) -> list[str]: ...
    def offered(self, tools: ToolSet) -> ToolSet: ...
    @staticmethod
    def built_in_template(name: str) -> str: ...
    def system_prompt(self, tools: ToolSet, delegates: bool, instructions: str) -> str: ...
    def example_messages(self, tools: ToolSet) -> list[tuple[str, str]]: ...
    def parse(
        self,
        text: str,
        finish_reason: FinishReason | None = None,
        limits: str | None = None,
        tools: ToolSet | None = None,
    ) -> Reply: ...
    def reader(self, limits: str | None = None, tools: ToolSet | None = None) -> Reader: ...
    def examples(self, prompt: str) -> list[PromptExample]: ...
    def grammar(
        self,
        tools: ToolSet,
        *,
        calls: bool,
        delegates: bool,
        finish: bool,
        in_progress: Sequence[str],
        completed: Sequence[str],
        agents: Sequence[str],
        thoughts: int | None,
        bounds: Bounds | None,
    ) -> Grammar: ...

@final
class EnvelopeWriter:
    """Writes one reply with the model's own tool calls."""

    def __new__(cls) -> EnvelopeWriter: ...
    def text(self, text: str) -> str: ...
    def reasoning(self, text: str, data: str | None = None) -> str: ...
    def call(
        self,
        index: int,
        id: str,
        tool: str,
        arguments: str,
        data: str | None = None,
        whole: bool = False,
    ) -> str: ...
    def fault(self, message: str, raw: str) -> str: ...
    def finish(self, cut: bool) -> str: ...

def note_certainty(run: RunView, certainty: float) -> None:
    """Record the probability of the first tool's name in the coming reply, from 0 to 1."""

def longest_shown(run: RunView) -> int:
    """The bytes that the last message shows of its longest result; 0 if it can't be cut."""

def offers_read_result(run: RunView) -> bool:
    """Whether the model is offered `read_result`."""

def hidden_replies(run: RunView) -> list[int]:
    """The positions of the refused replies that are no longer sent to the model."""

def script_outcomes(
    run: RunView, known: int
) -> list[tuple[int, OutcomeKind, str, float, int | None, bool]]:
    """Return the outcomes of a script's calls in the order of the log, except the first `known`.

    Each is the number of the call, its kind, JSON or a message, Unix seconds, the ticket, and true
    if a person has changed the arguments.
    """

def script_steps(run: RunView, known: int) -> list[tuple[int, str]]:
    """Return the replies of an interpreter, except the first `known`.

    Each is the number of outcomes that it knew, and the SHA-256 of the reply, or `""` before it.
    """

def script_printed(run: RunView) -> str | None:
    """Return the output of a script, or `None` for the run of a model."""

def run_began(run: RunView) -> float:
    """Return the Unix seconds at which a run began."""

def origins_of(run: RunView, ticket: int) -> str:
    """Return the origins of a call's values as JSON text of an object, traced now if need be."""

def set_can_ask(run: RunView, can_ask: bool) -> None:
    """Tell a run whether its driver has an approver."""

@final
class Setup:
    """What the runs of an agent share."""

    def __new__(
        cls,
        protocol: Protocol,
        tools: ToolSet,
        *,
        prompt: str,
        instructions: str | None,
        limits: str,
        raise_on_limit: bool,
        cancel_open: bool,
        delegates: bool,
        call_first: bool,
        early_stop: bool,
        early_start: bool,
        checks_answer: bool,
        ends_at_call: bool,
        values: str | None,
        values_by_model: bool,
        least_certainty: tuple[float, float] | None,
    ) -> Setup: ...

@final
class Waker:
    """Wakes an event loop after each commit of a store."""

    def fileno(self) -> int: ...
    def drain(self) -> None: ...

@final
class Store:
    """The logs of runs, in memory or in a file."""

    @staticmethod
    def memory() -> Store: ...
    @staticmethod
    def sqlite(path: str, durability: Literal["full", "normal", "memory"]) -> Store: ...
    @staticmethod
    def check_file(
        path: str, application_id: int, version: int, objects: list[tuple[str, str, str | None]]
    ) -> None: ...
    @staticmethod
    def postgres(url: str) -> Store: ...
    @staticmethod
    def migrate(url: str, pgmq: str | None) -> tuple[int, int, list[str]]: ...
    @property
    def address(self) -> str | None: ...
    def durable(self) -> int: ...
    def wait(self, position: int) -> None: ...
    def waker(self) -> Waker: ...
    def is_claimed(self, run_id: str) -> bool: ...
    def has(self, run_id: str) -> bool: ...
    def run_with(self, owner: str | None, agent: str, key: str) -> str | None: ...
    def ticket_with(self, owner: str | None, agent: str, key: str) -> tuple[str, int] | None: ...
    def runs(
        self,
        *,
        status: str | None,
        agent: str | None,
        owner: str | None,
        parent: str | None,
        since: float | None,
        until: float | None,
        limit: int | None,
    ) -> list[RunRow]: ...
    def tickets(
        self,
        *,
        status: str | None,
        kind: str | None,
        run: str | None,
        owner: str | None,
        parent: str | None,
        parked: bool | None,
        awaits_result: bool | None,
        since: float | None,
        until: float | None,
        limit: int | None,
    ) -> list[TicketRow]: ...
    def query(
        self, sql: str, parameters: Sequence[Any]
    ) -> tuple[list[str], list[tuple[Any, ...]]]: ...
    def import_run(self, lines: Sequence[str]) -> str: ...
    def delete(self, run_ids: Sequence[str]) -> int: ...
    def erase(self, owner: str) -> list[str]: ...
    def prune(self, before: float | None, keep: int | None) -> int: ...
    def sweep(self) -> None: ...
    def compact(self, run_id: str) -> None: ...
    @property
    def failed(self) -> str | None: ...
    def forked(self) -> None: ...
    def close(self) -> None: ...

@final
class SharedRuns:
    """The runs of a shared store, for workers and for those who give them work."""

    def __new__(cls, store: Store) -> SharedRuns: ...
    def set_lease(self, seconds: float) -> None: ...
    def set_stuck(self, seconds: float | None) -> None: ...
    def report(self, run_id: str) -> None: ...
    @property
    def clock_offset(self) -> float: ...
    def submit(
        self,
        *,
        run_id: str,
        agent: str,
        given: str,
        task: str,
        queue: str,
        tenant: str | None,
        owner: str | None,
        key: str | None,
        limit: int | None,
        delay: float,
        backlog: int | None,
    ) -> str | None: ...
    def make_queue(self, queue: str) -> None: ...
    def claim(
        self,
        queue: str,
        slots: int,
        agents: Sequence[str],
        refused: Sequence[str],
        begun_only: bool,
    ) -> tuple[list[_Claim], int]: ...
    def take(self, run_id: str) -> _Claim | None: ...
    def let_go(self, run_id: str, epoch: int) -> None: ...
    def why_lost(self, run_id: str) -> str | None: ...
    def refuse(self, run_id: str, epoch: int, delay: float) -> None: ...
    def rest(
        self, runs: Sequence[tuple[str, float | None]]
    ) -> list[Literal["rests", "told", "lost"]]: ...
    def inbox(
        self, run_id: str
    ) -> list[tuple[int, str, str, int | None, str | None, str | None]]: ...
    def drop_messages(self, ids: Sequence[int]) -> None: ...
    def tell(
        self, run_id: str, kind: str, ticket: int | None, body: str | None, by: str | None
    ) -> Literal["told", "no run", "not parked", "decided", "cancelled", "over"]: ...
    def submit_below(
        self,
        *,
        above_id: str,
        ticket: int,
        id: str,
        agent: str,
        known_as: str,
        given: str,
        above: str | None,
        task: str,
        queue: str | None,
        is_call: bool,
    ) -> bool: ...
    def is_apart(self, run_id: str) -> bool: ...
    def end_call(self, id: str, outcome: str | None) -> bool: ...
    def due_near(self, run_id: str) -> list[str]: ...
    def due(self, seconds: float, at_most: int) -> list[str]: ...
    def follow(self, run_ids: Sequence[str], seconds: float) -> None: ...
    def positions(self, run_ids: Sequence[str]) -> list[tuple[str, str | None, int]]: ...
    def has_more(self, run_id: str, next: int) -> bool: ...
    def announce(
        self,
        *,
        worker: str,
        version: str,
        agents: Sequence[str],
        queues: Sequence[str],
        slots: int,
        busy: int,
        taken_over: int,
        refused: int,
        cannot_drive: Sequence[str],
        misfits: str,
    ) -> None: ...
    def withdraw(self, worker: str) -> None: ...
    def notices(self) -> Notices: ...

@final
class Notices:
    """What other processes have told, for an event loop to take."""

    def fileno(self) -> int: ...
    def take(
        self,
    ) -> list[tuple[Literal["queue", "inbox", "written", "lost", "anything"], str]]: ...

class RunView:
    """What can be read from one run: its state, log, transcript and parts."""

    @property
    def instructions(self) -> str | None: ...
    @property
    def limits(self) -> str: ...
    @property
    def levels(self) -> int | None: ...
    def is_durable(self) -> bool: ...
    def check_claim(self) -> bool: ...
    @property
    def under_way(self) -> list[tuple[int, bool]] | None: ...
    def check_awaits_approval(self, ticket: int) -> None: ...
    def check_awaits_result(self, ticket: int) -> None: ...
    def check_answer(self, ticket: int, outcome: Outcome) -> None: ...
    def awaits_result(self, ticket: int) -> bool: ...
    @property
    def first_expiry(self) -> float | None:
        """Unix seconds at which the first call fails that awaits a result; `None` without one."""
    def check_edited(self, ticket: int, arguments: str) -> None: ...
    def is_checking_approval(self, ticket: int) -> bool: ...
    def awaits_approval(self, ticket: int) -> bool: ...
    def is_open(self, ticket: int) -> bool: ...
    def has_given_up(self, ticket: int) -> bool: ...
    def open_tasks(self) -> list[OpenTask]: ...
    @property
    def depth(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def unwritten(self) -> bool: ...
    @property
    def run_id(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def event_count(self) -> int: ...
    @property
    def shortened(self) -> Shortened | None: ...
    @property
    def said_at(self) -> int: ...
    @property
    def has_early_calls(self) -> bool: ...
    @property
    def limits_usage(self) -> bool: ...
    def attempts(self, ticket: int) -> int: ...
    def is_checking(self, turn: int) -> bool: ...
    @property
    def is_timed(self) -> bool: ...
    @property
    def last_at(self) -> float: ...
    @property
    def deadline(self) -> float | None: ...
    @property
    def message_count(self) -> int: ...
    def message(self, position: int) -> Message: ...
    def export_lines(self) -> list[str]: ...
    def parts(self) -> list[Part]: ...
    @property
    def has_parts(self) -> bool: ...
    @property
    def untrusted(self) -> bool: ...
    def read_untrusted(self, ticket: int) -> None: ...
    def begins_untrusted(self, ticket: int) -> bool: ...
    def ticket_list(self) -> str: ...
    def tool_forms(self) -> str: ...
    def tool_choice(self) -> tuple[Literal["auto", "required", "none"], str | None, bool]: ...
    @property
    def owner(self) -> str | None: ...
    @property
    def agent(self) -> str: ...
    def tool_spec(self, name: str) -> str | None: ...
    def has_task(self, text: str, parts: list[Part]) -> bool: ...
    def was_said(self, text: str, parts: list[Part], key: str) -> bool: ...
    @property
    def waits_for(self) -> tuple[list[int], list[int]] | None: ...
    @property
    def parent(self) -> tuple[str, int] | None: ...
    @property
    def awaiting_decision(self) -> list[int]: ...
    def ticket_news(self, known: int, changes: int) -> tuple[list[TicketRow], int]: ...
    def ended_since(self, known: int) -> list[int]: ...
    @property
    def ticket_count(self) -> int: ...
    @property
    def examples(self) -> int: ...
    def short(self, position: int) -> str | None: ...
    @property
    def ending(self) -> Ending | None: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def turn_usage(self) -> Usage: ...
    @property
    def total_usage(self) -> Usage: ...
    @property
    def turn(self) -> int: ...
    @property
    def violations(self) -> int: ...
    def records(self, seq: int = 0, *, texts: bool = False) -> list[str]: ...
    def grammar(self, thoughts: int | None, bounds: Bounds | None) -> Grammar: ...
    @property
    def finished(self) -> bool: ...
    @property
    def tools(self) -> ToolSet: ...
    def differences(self, setup: Setup) -> list[str]: ...

@final
class Run(RunView):
    """One run with its log and its claim on a store. Times are Unix seconds."""

    def __new__(
        cls,
        setup: Setup,
        *,
        run_id: str,
        agent: str,
        owner: str | None = None,
        key: str | None = None,
        seal_key: str | None = None,
        parent: tuple[str, int] | None = None,
        above: RunView | None = None,
        store: Store | None = None,
        limits: str | None = None,
        kept_limits: str | None = None,
        messages: Sequence[tuple[str, str, list[Part]]] | None = None,
        untrusted: bool = False,
    ) -> Run: ...
    @staticmethod
    def open(store: Store, run_id: str, above: RunView | None = None) -> Run: ...
    def adopt(self, setup: Setup, *, goes_on: bool = False) -> None: ...
    def trace_as(self, traceparent: str) -> None: ...
    def instruct(self, instructions: str, prompt: str) -> None: ...
    @staticmethod
    def load(store: Store, run_id: str) -> Run: ...
    def catch_up(self, store: Store) -> int: ...
    def take_messages(self, ids: Sequence[int]) -> None: ...
    def take_outcome(self, ticket: int, id: int) -> None: ...
    def join_apart(self, depth: int, above: Sequence[str]) -> None: ...
    def refresh_spent(self, store: Store, run_ids: Sequence[str]) -> None: ...
    @staticmethod
    def abandon(store: Store, run_id: str, now: float, above: str | None = None) -> None: ...
    @staticmethod
    def replay(lines: Sequence[str]) -> Run: ...
    def resume(self, now: float) -> list[Command]: ...
    def release(self) -> None: ...
    def claim(self, store: Store) -> None: ...
    def attend(self) -> None: ...
    def send(
        self, text: str, now: float, parts: list[Part] = ..., key: str | None = None
    ) -> list[Command]: ...
    def approve(
        self, ticket: int, now: float, arguments: str | None = None, by: str | None = None
    ) -> list[Command]: ...
    def approval_checked(
        self, ticket: int, needs_approval: bool, reason: str | None, now: float
    ) -> list[Command]: ...
    def deny(self, ticket: int, why: str, now: float, by: str | None = None) -> list[Command]: ...
    def answer(
        self, ticket: int, outcome: Outcome, now: float, by: str | None = None
    ) -> list[Command]: ...
    def expire(self, ticket: int, now: float) -> list[Command]: ...
    def start(self, task: str, now: float, parts: list[Part] = ...) -> list[Command]: ...
    def push(
        self, chunk: str | bytes, turn: int, now: float
    ) -> tuple[list[Delta], bool, list[Command]]: ...
    def use_model(self, model: str | None, provider: str | None) -> None:
        """Name the model that is asked from now on."""

    def end_reply(
        self,
        turn: int,
        finish_reason: str | None,
        usage: Usage | None,
        now: float,
        *,
        first_at: float | None = None,
        model: tuple[str | None, str | None] | None = None,
    ) -> list[Command]: ...
    def reply(
        self,
        text: str,
        turn: int,
        finish_reason: str | None,
        usage: Usage | None,
        now: float,
        *,
        model: tuple[str | None, str | None] | None = None,
    ) -> list[Command]: ...
    def attempt_failed(
        self, model: str, error: str, wait: float | None, usage: Usage | None, now: float
    ) -> list[Command]: ...
    def shorten_history(
        self,
        exchanges: int,
        results: int,
        now: float,
        *,
        result_bytes: int | None = None,
        summary: str | None = None,
        error: str | None = None,
        usage: Usage | None = None,
    ) -> list[Command]: ...
    def tool_attempt_failed(
        self, ticket: int, error: str, wait: float, now: float
    ) -> list[Command]: ...
    def complete_call(self, ticket: int, outcome: Outcome, now: float) -> list[Command]: ...
    def complete_task(
        self, ticket: int, outcome: Outcome, run: RunView | None, now: float
    ) -> list[Command]: ...
    def answer_checked(self, turn: int, refused: str | None, now: float) -> list[Command]: ...
    def end_grace(self, now: float) -> list[Command]: ...
    def time_out(self, now: float) -> list[Command]: ...
    def pend(self, ticket: int, key: str | None, kind: str, now: float) -> list[Command]: ...
    def pause(self, since: float, now: float) -> list[Command]: ...
    def model_failed(self, message: str, turn: int, now: float) -> list[Command]: ...
    def cancel(self, now: float) -> list[Command]: ...

@final
class ScriptJob:
    """A script, or an installation of packages, under way on a thread of its own.

    Its events are those of external runners; the last one is `finished`, `refused` or `failed`.
    """

    @staticmethod
    def run(request: str) -> ScriptJob: ...
    @staticmethod
    def install(request: str) -> ScriptJob: ...
    def fileno(self) -> int:
        """Return a descriptor that is readable while there is news."""

    def news(self) -> list[str]:
        """Return the events since the last call, as JSON. Never blocks."""

    def wait(self, seconds: float) -> None:
        """Wait for news, at most so long."""

    def answer(self, id: int, text: str | None) -> None:
        """Answer a question; `None` is the end of input."""

    def cancel(self) -> None:
        """Kill it, from any thread. The last event still comes."""

    @property
    def over(self) -> bool:
        """Whether the last event was handed out."""

def probe(launcher: str, bwrap: str | None) -> str:
    """Try what keeps scripts apart here, once in a process. Returns JSON.

    `isolated` and `restricted`, each `null` or an object of `stage`, `errno`, `message`, `remedy`.
    """
