//! Writes envelopes: one line for each item of a reply, whole or piece by piece.

/// A call that is not complete, or waits for an earlier one.
#[derive(Debug, Default)]
struct Pending {
    id: String,
    tool: String,
    arguments: String,
    data: Option<String>,
    whole: bool,
}

/// The kind of the open line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Open {
    /// No line is open.
    #[default]
    Nothing,
    Text,
    Reasoning,
    /// The first call that is not complete.
    Call,
}

/// Writes one envelope. Each method returns the next piece of its text.
///
/// Adjacent texts are one item. Adjacent reasoning is one item up to its data. Of several calls that arrive at the same time
/// the first is written as it comes; the others wait until it has ended.
#[derive(Debug, Default)]
pub struct Writer {
    out: String,
    open: Open,
    /// The calls that have not ended, in the order of their first pieces.
    calls: Vec<(u64, Pending)>,
    /// Whether the head of the first of them is written.
    head: bool,
}

impl Writer {
    /// More text to the user.
    pub fn text(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        if self.open != Open::Text {
            self.close();
            self.out.push_str("{\"text\":\"");
            self.open = Open::Text;
        }
        self.escaped(text);
        self.taken()
    }

    /// More reasoning. With `data`, the JSON text of an object, it has ended.
    pub fn reasoning(&mut self, text: &str, data: Option<&str>) -> String {
        if text.is_empty() && data.is_none() {
            return String::new();
        }
        if self.open != Open::Reasoning {
            self.close();
            self.out.push_str("{\"reasoning\":\"");
            self.open = Open::Reasoning;
        }
        self.escaped(text);
        if let Some(data) = data {
            self.out.push_str("\",\"data\":");
            self.out.push_str(&data.replace(['\n', '\r'], " "));
            self.out.push_str("}\n");
            self.open = Open::Nothing;
        }
        self.taken()
    }

    /// A call, or more of it: a piece with the index of a call that has not ended belongs to it, unless it brings another
    /// id. `whole` says that the call has ended.
    pub fn call(
        &mut self,
        index: u64,
        id: &str,
        tool: &str,
        arguments: &str,
        data: Option<&str>,
        whole: bool,
    ) -> String {
        if matches!(self.open, Open::Text | Open::Reasoning) {
            self.close();
        }
        let other_id = |known: &Pending| !id.is_empty() && !known.id.is_empty() && known.id != id;
        if let Some((_, known)) = self.calls.iter_mut().find(|(at, call)| *at == index && !call.whole)
            && other_id(known)
        {
            known.whole = true;
            self.advance(false);
        }
        if !self.calls.iter().any(|(at, call)| *at == index && !call.whole) {
            self.calls.push((index, Pending::default()));
        }
        if let Some((_, call)) = self.calls.iter_mut().find(|(at, call)| *at == index && !call.whole) {
            if call.id.is_empty() {
                call.id.push_str(id);
            }
            // Some servers repeat the name in each piece.
            if call.tool != tool {
                call.tool.push_str(tool);
            }
            call.arguments.push_str(arguments);
            if let Some(data) = data {
                call.data = Some(data.replace(['\n', '\r'], " "));
            }
            call.whole = whole;
        }
        self.advance(false);
        self.taken()
    }

    /// The call of this index has ended.
    pub fn end_call(&mut self, index: u64) -> String {
        if let Some((_, call)) = self.calls.iter_mut().find(|(at, call)| *at == index && !call.whole) {
            call.whole = true;
        }
        self.advance(false);
        self.taken()
    }

    /// The service could not read its own model's call.
    pub fn fault(&mut self, message: &str, raw: &str) -> String {
        self.close();
        self.out.push_str("{\"fault\":\"");
        self.escaped(message);
        self.out.push_str("\",\"raw\":\"");
        self.escaped(raw);
        self.out.push_str("\"}\n");
        self.taken()
    }

    /// The reply has ended. The last line of a truncated reply stays open.
    pub fn finish(&mut self, cut: bool) -> String {
        if cut {
            let last = self.calls.len().saturating_sub(1);
            for (_, call) in self.calls.iter_mut().take(last) {
                call.whole = true;
            }
            self.advance(true);
        } else {
            self.close();
        }
        self.taken()
    }

    /// Ends the line, and all calls before the next item.
    fn close(&mut self) {
        match self.open {
            Open::Text | Open::Reasoning => self.out.push_str("\"}\n"),
            Open::Nothing | Open::Call => {}
        }
        if matches!(self.open, Open::Text | Open::Reasoning) {
            self.open = Open::Nothing;
        }
        for (_, call) in &mut self.calls {
            call.whole = true;
        }
        self.advance(true);
    }

    /// Writes all complete calls, and the beginning of the next one. A name may still grow before there are
    /// arguments, so the head waits for them; `forced` does not.
    fn advance(&mut self, forced: bool) {
        while let Some((_, call)) = self.calls.first_mut() {
            if !self.head {
                if !forced && !call.whole && (call.arguments.is_empty() || call.tool.is_empty()) {
                    return;
                }
                self.out.push_str("{\"call\":");
                push_quoted(&mut self.out, &call.id);
                self.out.push_str(",\"tool\":");
                push_quoted(&mut self.out, &call.tool);
                self.out.push_str(",\"arguments\":\"");
                self.head = true;
                self.open = Open::Call;
            }
            let more = std::mem::take(&mut call.arguments);
            push_escaped(&mut self.out, &more);
            if !call.whole {
                return;
            }
            self.out.push('"');
            if let Some(data) = &call.data {
                self.out.push_str(",\"data\":");
                self.out.push_str(data);
            }
            self.out.push_str("}\n");
            self.calls.remove(0);
            self.head = false;
            self.open = Open::Nothing;
        }
    }

    fn escaped(&mut self, text: &str) {
        push_escaped(&mut self.out, text);
    }

    fn taken(&mut self) -> String {
        std::mem::take(&mut self.out)
    }
}

/// A string literal of JSON.
fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

/// The inside of a string literal, as `serde_json` writes it.
fn push_escaped(out: &mut String, text: &str) {
    let quoted = serde_json::Value::from(text).to_string();
    out.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
}
