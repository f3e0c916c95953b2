"""Models of other libraries in this process: transformers, vLLM and llama-cpp-python."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, ClassVar

from callslip.models._client_model import ClientModel
from callslip.models._fields import first_field
from callslip.models._grammar_forms import GrammarForm
from callslip.models._part_shapes import CHAT_IMAGE, Shapes, sent_messages, text_block
from callslip.models._reply import Messages, ModelReply, open_result
from callslip.models._special_tokens import llama_marks, tokenizer_marks, without_marks

__all__ = ["LlamaModel", "PipelineModel", "VllmModel"]

_Grammar = str | Mapping[str, object]


class PipelineModel(ClientModel):
    """A text-generation pipeline of transformers. Replies are not streamed.

    Options are those of the pipeline's call (`do_sample`, …).
    """

    _SENT: Mapping[str, str] = {"stop": "stop_strings", "max_tokens": "max_new_tokens"}
    _NEEDS_NAME = False
    _PROVIDER = "local"

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        pipe = self._client
        marks = tokenizer_marks(pipe.tokenizer)
        turns = without_marks([dict(message) for message in messages], marks)
        if "stop_strings" in request:
            request["tokenizer"] = pipe.tokenizer
        reply = open_result(pipe(turns, return_full_text=False, **request))
        assert isinstance(reply, ModelReply)
        prompt = pipe.tokenizer.apply_chat_template(turns, add_generation_prompt=True)
        ids: Any = first_field(prompt, "input_ids") or prompt
        written = len(pipe.tokenizer.encode(reply.text, add_special_tokens=False))
        most: Any = request.get("max_new_tokens")
        # Nothing else tells whether the reply was cut.
        end = "length" if most is not None and written >= most else None
        return ModelReply(reply.text, end, {"input_tokens": len(ids), "output_tokens": written})


class VllmModel(ClientModel):
    """`LLM.chat` of vLLM without a server. Replies are not streamed.

    Options are fields of `SamplingParams`, or parameters of `chat`.
    """

    _NEEDS_NAME = False
    _PROVIDER = "local"
    _FORMS = ("auto", "gbnf")
    # Few of them read images, and those only if they are made for it.
    _SHAPES: ClassVar[Shapes] = CHAT_IMAGE
    _PARAMETERS = (
        "chat_template",
        "chat_template_content_format",
        "chat_template_kwargs",
        "lora_request",
        "mm_processor_kwargs",
        "use_tqdm",
    )

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        named = {name: request.pop(name) for name in self._PARAMETERS if name in request}
        # By default a reply ends after 16 tokens.
        request.setdefault("max_tokens", None)
        params = importlib.import_module("vllm").SamplingParams(**request)
        turns = sent_messages(messages, self._SHAPES, text_block)
        if callable(tokenizer := getattr(self._client, "get_tokenizer", None)):
            turns = without_marks(turns, tokenizer_marks(tokenizer()))
        return self._client.chat(turns, sampling_params=params, **{"use_tqdm": False, **named})

    def _put_grammar(self, request: dict[str, object], form: GrammarForm, text: _Grammar) -> None:
        del form
        sampling: Any = importlib.import_module("vllm.sampling_params")
        request["structured_outputs"] = sampling.StructuredOutputsParams(grammar=text)


class LlamaModel(ClientModel):
    """`create_chat_completion` of llama-cpp-python's `Llama`."""

    _NEEDS_NAME = False
    _PROVIDER = "local"
    _FORMS = ("auto", "gbnf")
    # Few of them read images, and those only if they are made for it.
    _SHAPES: ClassVar[Shapes] = CHAT_IMAGE

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, **options)
        self._marks: frozenset[str] | None = None
        size = getattr(client, "n_ctx", None)
        if self.context is None and callable(size):
            known = size()
            self.context = known if isinstance(known, int) else None

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, as the model reads it."""
        return len(self._client.tokenize(text.encode("utf-8", "replace"), add_bos=False))

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        if self._marks is None:
            self._marks = llama_marks(self._client)
        turns = without_marks(sent_messages(messages, self._SHAPES, text_block), self._marks)
        create = self._client.create_chat_completion
        return create(messages=turns, stream=self._stream, **request)

    def _put_grammar(self, request: dict[str, object], form: GrammarForm, text: _Grammar) -> None:
        del form
        llama: Any = importlib.import_module("llama_cpp")
        request["grammar"] = llama.LlamaGrammar.from_string(text, verbose=False)
