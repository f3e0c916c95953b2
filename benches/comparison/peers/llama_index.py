"""LlamaIndex: `FunctionAgent` with a `FunctionCallingLLM`; its class `OpenAI` for faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from comparison.task import PROMPT, TASK, Run, Wait, add


def counting(turns: int, wait: Wait) -> Any:
    from llama_index.core.base.llms.types import (
        ChatMessage,
        ChatResponse,
        LLMMetadata,
        TextBlock,
        ToolCallBlock,
    )
    from llama_index.core.llms.function_calling import FunctionCallingLLM
    from llama_index.core.llms.llm import ToolSelection

    class Counting(FunctionCallingLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

        def _prepare_chat_with_tools(self, tools: Any, **named: Any) -> dict[str, Any]:
            return {"messages": named["chat_history"], "tools": tools}

        def get_tool_calls_from_response(self, response: Any, **_: Any) -> list[ToolSelection]:
            return [
                ToolSelection(
                    tool_id=one.tool_call_id, tool_name=one.tool_name, tool_kwargs=one.tool_kwargs
                )
                for one in response.message.blocks
                if isinstance(one, ToolCallBlock)
            ]

        async def achat(self, messages: Any, **_: Any) -> ChatResponse:
            turn = (len(messages) - 2) // 2
            if wait is not None:
                await wait(turn)
            block: Any = TextBlock(text="ok")
            if turn < turns:
                block = ToolCallBlock(
                    tool_call_id=f"c{turn}", tool_name="add", tool_kwargs={"a": turn, "b": 1}
                )
            return ChatResponse(message=ChatMessage(role="assistant", blocks=[block]))

        async def astream_chat(self, messages: Any, **named: Any) -> AsyncIterator[ChatResponse]:
            async def stream() -> AsyncIterator[ChatResponse]:
                yield await self.achat(messages, **named)

            return stream()

        def chat(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        complete = stream_complete = stream_chat = acomplete = astream_complete = chat

    return Counting()


def counter(turns: int, wait: Wait) -> Run:
    from llama_index.core.agent.workflow import FunctionAgent

    agent = FunctionAgent(tools=[add], llm=counting(turns, wait), system_prompt=PROMPT)

    async def run() -> str:
        return str(await agent.run(TASK, max_iterations=turns + 5))

    return run


def transfers(
    base: str, transfer: Callable[[str, float], Awaitable[str]], timeout: float | None
) -> Run:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai import OpenAI

    options = {} if timeout is None else {"timeout": timeout}
    model = OpenAI(model="gpt-4o", api_base=base, api_key="none", **options)
    agent = FunctionAgent(tools=[transfer], llm=model, system_prompt=PROMPT)

    async def run() -> str:
        handler = agent.run(TASK)
        try:
            return str(await handler)
        except asyncio.CancelledError:
            # A workflow is a task of its own, which its handler cancels.
            await handler.cancel_run()
            raise

    return run
