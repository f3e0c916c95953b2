//! The published forms of model families: one table, a row for each mark that a call begins with.

/// How a call is written behind its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON, tags or Python between the mark and an end tag.
    Wrapped,
    /// JSON, or `name[ARGS]{…}` (Mistral).
    Listed,
    /// JSON, several of them after `;` (Llama 3).
    Json,
    /// `name>` and JSON or parameters, up to `</function>` (Llama, Qwen3-Coder, Seed-OSS).
    Function,
    /// `name="name">` and parameters, up to `</invoke>` (Claude, `MiniMax`, `DeepSeek` V3.2).
    Invoke,
    /// `functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>` (Kimi).
    Section,
    /// `name<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`, or with a type before and the JSON in a fence (`DeepSeek`).
    Separated,
    /// `call:name{key:<|"|>value<|"|>}` (Gemma 4).
    Gemma,
    /// `functions.name<|message|>{…}`, or without the control tokens (gpt-oss).
    Channel,
    /// `name` and `Action Input: {…}` (`ReAct`).
    Action,
    /// The answer of such a text.
    FinalAnswer,
    /// `name({…})`, `name:0 {…}` or `name()`.
    Dotted,
    /// The whole reply is a call without a mark.
    Bare,
}

/// What is done with the blanks around the value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trim {
    /// They are a part of it.
    Nothing,
    /// One line break on each side is layout.
    Line,
    /// None of them is a part of it.
    Blanks,
}

/// One mark.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) mark: &'static str,
    pub(super) form: Form,
    /// The end tag of `Wrapped`, empty where there is none.
    pub(super) close: &'static str,
    /// What stands before the names of the tags inside.
    pub(super) prefix: &'static str,
    /// How values between tags are read.
    pub(super) trim: Trim,
    /// What it begins with, for messages.
    pub(super) shown: &'static str,
    /// The tool is named outside of JSON, so that the JSON inside can't be a move.
    pub(super) names_outside: bool,
}

const fn row(mark: &'static str, form: Form, shown: &'static str, names_outside: bool) -> Row {
    Row { mark, form, close: "", prefix: "", trim: Trim::Line, shown, names_outside }
}

const fn wrapped(mark: &'static str, close: &'static str) -> Row {
    Row { close, ..row(mark, Form::Wrapped, mark, false) }
}

const fn invokes(mark: &'static str, close: &'static str, prefix: &'static str, trim: Trim) -> Row {
    Row { close, prefix, trim, ..row(mark, Form::Invoke, "<invoke ...>", true) }
}

const CHANNEL: &str = "<|channel|>commentary to=...";

/// The table. Of marks that begin alike the longer one comes first.
pub(super) const ROWS: &[Row] = &[
    // Hermes, Qwen; with tags inside Qwen3-Coder, GLM.
    wrapped("<tool_call>", "</tool_call>"),
    // MiniMax M1, Apriel.
    wrapped("<tool_calls>", "</tool_calls>"),
    // LongCat.
    wrapped("<longcat_tool_call>", "</longcat_tool_call>"),
    // Seed-OSS.
    wrapped("<seed:tool_call>", "</seed:tool_call>"),
    // Nemotron.
    wrapped("<TOOLCALL>", "</TOOLCALL>"),
    // Granite 3, Phi-4-mini.
    wrapped("<|tool_call|>", "<|/tool_call|>"),
    // Phi-4-mini.
    Row { shown: "functools[...]", ..wrapped("functools[", "") },
    // LFM2.
    Row { names_outside: true, ..wrapped("<|tool_call_start|>", "<|tool_call_end|>") },
    // Llama 4.
    Row { names_outside: true, ..wrapped("<|python_start|>", "<|python_end|>") },
    // Command A.
    wrapped("<|START_ACTION|>", "<|END_ACTION|>"),
    // LM Studio.
    wrapped("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
    // Mistral.
    row("[TOOL_CALLS]", Form::Listed, "[TOOL_CALLS]", false),
    // Llama 3.
    row("<|python_tag|>", Form::Json, "<|python_tag|>", false),
    // Llama 3, Qwen3-Coder where the tag around it is missing.
    row("<function=", Form::Function, "<function=...>", true),
    // Claude; Olmo 3 with Python inside.
    invokes("<function_calls>", "</function_calls>", "", Trim::Nothing),
    invokes("<invoke ", "", "", Trim::Nothing),
    invokes("<antml:function_calls>", "</antml:function_calls>", "antml:", Trim::Nothing),
    invokes("<antml:invoke ", "", "antml:", Trim::Nothing),
    // MiniMax M2.
    invokes("<minimax:tool_call>", "</minimax:tool_call>", "", Trim::Blanks),
    // DeepSeek V3.2.
    invokes("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "｜DSML｜", Trim::Nothing),
    invokes("<｜DSML｜invoke ", "", "｜DSML｜", Trim::Nothing),
    // DeepSeek V3, V3.1.
    row("<｜tool▁calls▁begin｜>", Form::Separated, "<｜tool▁call▁begin｜>", true),
    row("<｜tool▁call▁begin｜>", Form::Separated, "<｜tool▁call▁begin｜>", true),
    // Kimi K2.
    row("<|tool_calls_section_begin|>", Form::Section, "<|tool_call_begin|>", true),
    row("<|tool_call_begin|>", Form::Section, "<|tool_call_begin|>", true),
    // Gemma 4.
    row("<|tool_call>", Form::Gemma, "<|tool_call>call:...", true),
    // gpt-oss, and behind servers that remove control tokens.
    row("<|start|>assistant<|channel|>commentary to=", Form::Channel, CHANNEL, true),
    row("<|channel|>commentary to=", Form::Channel, CHANNEL, true),
    row("assistantcommentary to=", Form::Channel, CHANNEL, true),
    row("commentary to=", Form::Channel, CHANNEL, true),
    // ReAct in words.
    row("Action:", Form::Action, "Action: and Action Input:", true),
    row("Final Answer:", Form::FinalAnswer, "Final Answer:", true),
    // Kimi, gpt-oss in words.
    row("functions.", Form::Dotted, "functions.name(...)", true),
];

/// A reply that is a call and nothing else.
pub(super) static BARE: Row = row("", Form::Bare, "a call alone", false);

#[cfg(test)]
mod tests {
    use super::ROWS;

    #[test]
    fn no_mark_hides_a_longer_one() {
        for (at, row) in ROWS.iter().enumerate() {
            for later in ROWS.iter().skip(at + 1) {
                assert!(!later.mark.to_ascii_lowercase().starts_with(&row.mark.to_ascii_lowercase()), "{}", row.mark);
            }
        }
    }
}
