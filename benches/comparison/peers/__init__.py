"""What callslip is compared with, and how each environment is made.

The versions are those of the dependency group `compare` in pyproject.toml.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PEERS", "Peer"]


@dataclass(frozen=True)
class Peer:
    """One row of the comparison: an adapter in this folder.

    Attributes:
        name: The adapter.
        title: The name on the page.
        uses: What a program of its docs uses, and so does the adapter.
        needs: The distributions that an agent with OpenAI's client needs, in the order of the page.
        durability: What keeps its runs. Empty if there is none; then `without` says why.
        keeps: Further distributions for that.
        environment: The folder of its environment.
        imports: The statement whose time is measured; none for a second row of the same peer.
    """

    name: str
    title: str
    uses: str
    needs: tuple[str, ...]
    durability: str = ""
    without: str = ""
    keeps: tuple[str, ...] = ()
    environment: str = ""
    imports: str = ""

    @property
    def folder(self) -> str:
        return self.environment or self.name

    @property
    def is_ours(self) -> bool:
        return self.folder == "callslip" and self.has_faults

    @property
    def has_faults(self) -> bool:
        """Whether it stands in the tables beside the one of the loop."""
        return bool(self.imports)


OURS = ("pydantic", "griffelib", "openai")

PEERS: tuple[Peer, ...] = (
    Peer("bare_loop", "a loop by hand", "about 30 lines of asyncio", OURS, environment="callslip"),
    Peer(
        "callslip",
        "callslip",
        "`Agent`: react for the loop, chatty for the faults",
        OURS,
        durability="SQLite, `store=`",
        imports="from callslip import Agent, tool",
    ),
    Peer(
        "callslip_chatty",
        "callslip, chatty",
        "`Agent` with the chatty protocol",
        OURS,
        environment="callslip",
    ),
    Peer(
        "callslip_native",
        "callslip, native",
        '`Agent` with `protocol="native"`',
        OURS,
        durability="SQLite, `store=`",
        environment="callslip",
        imports="from callslip import Agent, NativeProtocol, tool",
    ),
    Peer(
        "pydantic_ai",
        "pydantic-ai",
        "`Agent`, `FunctionModel`, `OpenAIChatModel`",
        ("pydantic-ai-slim", "openai"),
        durability="SQLite, DBOS (`DBOSDurability`)",
        keeps=("dbos",),
        imports="from pydantic_ai import Agent",
    ),
    Peer(
        "openai_agents",
        "OpenAI Agents SDK",
        "`Agent`, `Runner`, `OpenAIChatCompletionsModel`",
        ("openai-agents", "openai"),
        durability="SQLite, `SQLiteSession`; asked again in the session",
        imports="from agents import Agent, Runner, function_tool",
    ),
    Peer(
        "langgraph",
        "LangGraph",
        "`create_agent`, `ChatOpenAI`",
        ("langgraph", "langchain", "langchain-openai", "openai"),
        durability='SQLite, `AsyncSqliteSaver`, `durability="sync"`',
        keeps=("langgraph-checkpoint-sqlite",),
        imports="from langchain.agents import create_agent",
    ),
    Peer(
        "langgraph_graph",
        "LangGraph, own graph",
        "`StateGraph` with two nodes on plain messages",
        ("langgraph", "langchain", "langchain-openai", "openai"),
        keeps=("langgraph-checkpoint-sqlite",),
        environment="langgraph",
    ),
    Peer(
        "smolagents",
        "smolagents",
        "`ToolCallingAgent` in a thread, `OpenAIServerModel`",
        ("smolagents", "openai"),
        without="its memory is an object in the process",
        imports="from smolagents import ToolCallingAgent, tool",
    ),
    Peer(
        "strands",
        "Strands Agents",
        "`Agent`, `OpenAIModel`",
        ("strands-agents",),
        durability='files, `SnapshotSessionManager(save_latest_on="message")`; asked again',
        imports="from strands import Agent, tool",
    ),
    Peer(
        "llama_index",
        "LlamaIndex",
        "`FunctionAgent`, `OpenAI`",
        ("llama-index-core", "llama-index-llms-openai"),
        without="a program saves the `Context` itself; `FunctionAgent` takes no store",
        imports="from llama_index.core.agent.workflow import FunctionAgent",
    ),
    Peer(
        "haystack",
        "Haystack",
        "`Agent`, `OpenAIChatGenerator`",
        ("haystack-ai", "openai"),
        without="`Agent` keeps nothing between its steps",
        imports="from haystack.components.agents import Agent",
    ),
    Peer(
        "agno",
        "Agno",
        "`Agent`, `OpenAIChat`",
        ("agno", "openai"),
        durability='SQLite, `AsyncSqliteDb`, `checkpoint="tool-batch"`',
        keeps=("sqlalchemy", "greenlet", "aiosqlite"),
        imports="from agno.agent import Agent",
    ),
)
