//! The codes of repairs.

use super::names::names;

names! {
    /// The stable name of a kind of repair.
    pub enum RepairCode {
        // Around the payload.
        /// A fence around the payload was taken off.
        FenceStripped = "fence_stripped",
        /// The fence that held the whole reply, tool block included, was taken off.
        FenceAroundBlock = "fence_around_block",
        /// Text before the payload was dropped.
        ProseStripped = "prose_stripped",
        /// Text after the payload was dropped.
        TrailingTextDropped = "trailing_text_dropped",
        /// An observation, result or user turn that the model invented after its move was dropped.
        HallucinatedObservation = "hallucinated_observation",
        /// A control token of the model's chat template was dropped.
        SpecialTokenStripped = "special_token_stripped",
        /// A byte order mark was dropped.
        BomStripped = "bom_stripped",
        /// A reasoning block was set aside.
        ReasoningStripped = "reasoning_stripped",
        /// A reasoning block that the chat template had opened was set aside.
        ImplicitThink = "implicit_think",
        /// The end tag is missing after a complete value.
        MissingCloseTag = "missing_close_tag",
        /// The start tag is missing before a complete value.
        MissingOpenTag = "missing_open_tag",
        /// Both output tags are missing around the only object.
        MissingOutputTags = "missing_output_tags",
        /// The thoughts are missing.
        MissingThoughts = "missing_thoughts",
        /// The thoughts end where the output begins.
        UnclosedThoughts = "unclosed_thoughts",
        /// A tag in other case or with blanks.
        TagForm = "tag_form",

        // Brackets and separators.
        /// Missing closing brackets were added before a proven end.
        ClosedBrackets = "closed_brackets",
        /// Surplus closing brackets were dropped.
        ExtraClosers = "extra_closers",
        /// Braces doubled as in a template were read as one.
        DoubledBraces = "doubled_braces",
        /// A comma before a closing bracket was dropped.
        TrailingComma = "trailing_comma",
        /// A missing comma was added.
        MissingComma = "missing_comma",
        /// A colon or comma of East Asian width was read as one.
        WidePunctuation = "wide_punctuation",
        /// A comment was dropped.
        Comment = "comment",
        /// A blank that JSON does not know was read as one.
        UnicodeWhitespace = "unicode_whitespace",
        /// A written-out `\n`, `\r` or `\t` between tokens was read as a blank.
        EscapedWhitespace = "escaped_whitespace",

        // Strings.
        /// A string or key in single quotes.
        SingleQuotes = "single_quotes",
        /// A string or key in a pair of typographic quotes.
        CurlyQuotes = "curly_quotes",
        /// A string in triple quotes.
        TripleQuotedString = "triple_quoted_string",
        /// A string in backticks.
        BacktickString = "backtick_string",
        /// A raw control character in a string.
        ControlCharInString = "control_char_in_string",
        /// A backslash that begins no escape was read as itself.
        InvalidEscape = "invalid_escape",

        /// An escape of Python's, in a string in single quotes.
        PythonEscape = "python_escape",

        // Words and numbers.
        /// A key without quotes.
        UnquotedKey = "unquoted_key",
        /// `True`, `False` or `None`.
        PythonLiteral = "python_literal",
        /// A literal in other case.
        LiteralCase = "literal_case",
        /// A number written as `.5`, `5.`, `+5` or `1_000`.
        NumberForm = "number_form",

        // The shape of the payload.
        /// `args` was an object instead of its JSON text.
        ArgsObject = "args_object",
        /// `arguments` was JSON text instead of an object.
        ArgumentsString = "arguments_string",
        /// Arguments were encoded as JSON text twice.
        ArgsDoubleEncoded = "args_double_encoded",
        /// Empty text was read as no arguments.
        EmptyArgs = "empty_args",
        /// Arguments that are missing were read as none.
        MissingArguments = "missing_arguments",
        /// An empty field of another move was read as absent.
        EmptyField = "empty_field",
        /// Thoughts in a list of texts were read as one text.
        ThoughtList = "thought_list",
        /// A field that is `null` was read as absent.
        NullField = "null_field",
        /// An array of one was read as its element.
        SingleElementArray = "single_element_array",
        /// One call was read as an array of one.
        SingleObjectWrapped = "single_object_wrapped",
        /// Calls one after the other were read as an array.
        NdjsonToArray = "ndjson_to_array",
        /// Several arrays in one block were joined.
        MergedArrays = "merged_arrays",
        /// Adjacent tool blocks were joined.
        MergedBlocks = "merged_blocks",
        /// An identical copy was dropped.
        DuplicateObjectDropped = "duplicate_object_dropped",
        /// A key that stands twice with the same value was read once.
        DuplicateKeyDropped = "duplicate_key_dropped",
        /// A key that the move does not need and no other move owns was dropped.
        UnknownKeyDropped = "unknown_key_dropped",
        /// A method beside a path was read with it.
        MethodJoined = "method_joined",
        /// A key in other case was read as the protocol's own.
        KeyCase = "key_case",
        /// A missing `call_id` was filled in.
        MissingCallId = "missing_call_id",
        /// A missing description was left empty.
        MissingDescription = "missing_description",
        /// A number was read as the id it spells.
        IdStringified = "id_stringified",
        /// A keyword in other case.
        KeywordCase = "keyword_case",
        /// A key of another name for the same thing was read as the protocol's own (lenient only).
        KeyAlias = "key_alias",
        /// A call in the published form of a model family was read (lenient only).
        PublishedForm = "published_form",
        /// A boolean in quotes.
        BoolFromString = "bool_from_string",
        /// Blanks around a name were dropped.
        NameTrimmed = "name_trimmed",
    }
}
