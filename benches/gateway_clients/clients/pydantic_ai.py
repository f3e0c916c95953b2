"""pydantic-ai: `Agent` with `OpenAIChatModel`."""

from __future__ import annotations

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from gateway_clients.job import MAX_REQUESTS, MAX_TOKENS, Job


def answer(job: Job) -> str:
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=job.url, api_key=job.key))
    agent = Agent(
        model,
        tools=job.functions,
        model_settings=ModelSettings(temperature=0, max_tokens=MAX_TOKENS),
    )
    limits = UsageLimits(request_limit=MAX_REQUESTS)
    return str(agent.run_sync(job.text, usage_limits=limits).output)
