//! How servers that speak chat completions differ: a small value chosen once per entry.

/// The differences that matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::models) struct Dialect {
    /// The word in `model_provider`.
    pub(in crate::models) provider: &'static str,
    /// Where the server lives when the entry does not say.
    pub(in crate::models) default_base_url: Option<&'static str>,
    /// The field in which a past answer's reasoning is sent back, for servers that want it.
    pub(in crate::models) reasoning_field: Option<&'static str>,
    /// What came with a tool call, such as the signature of the thoughts behind it, goes back with it.
    pub(in crate::models) returns_call_extras: bool,
    /// `max_tokens` goes as `max_completion_tokens`: OpenAI's newer models refuse the old name.
    pub(in crate::models) renames_max_tokens: bool,
    /// Speakers' names are left out: the server refuses them.
    pub(in crate::models) drops_names: bool,
    /// Asks for reasoning apart from the text, and parts what comes in the text all the same.
    pub(in crate::models) splits_reasoning: bool,
    /// `chat_template_kwargs.thinking` goes as `enable_thinking`.
    pub(in crate::models) renames_thinking_switch: bool,
}

impl Dialect {
    /// Plain chat completions.
    pub(in crate::models) const OPENAI: Self = Self {
        provider: "openai",
        default_base_url: Some("https://api.openai.com/v1"),
        reasoning_field: None,
        returns_call_extras: false,
        renames_max_tokens: false,
        renames_thinking_switch: false,
        drops_names: false,
        splits_reasoning: false,
    };
    /// Wants the reasoning of earlier answers back.
    pub(in crate::models) const DEEPSEEK: Self = Self {
        provider: "deepseek",
        default_base_url: Some("https://api.deepseek.com/v1"),
        reasoning_field: Some("reasoning_content"),
        ..Self::OPENAI
    };
    /// The same, on somebody else's server.
    pub(in crate::models) const REASONING_REPLAY: Self =
        Self { provider: "openai", default_base_url: None, returns_call_extras: true, ..Self::DEEPSEEK };
    /// MiniMax.
    pub(in crate::models) const MINIMAX: Self = Self {
        provider: "minimax",
        default_base_url: Some("https://api.minimax.io/v1"),
        drops_names: true,
        splits_reasoning: true,
        ..Self::OPENAI
    };
    /// vLLM's own server.
    pub(in crate::models) const VLLM: Self = Self {
        provider: "vllm",
        default_base_url: None,
        reasoning_field: Some("reasoning"),
        renames_thinking_switch: true,
        ..Self::OPENAI
    };
}
