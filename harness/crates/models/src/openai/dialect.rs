//! Differences between servers that implement chat completions: a small value that is chosen per
//! entry.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::http::ProviderDefaults;

const SERVER: ProviderDefaults = ProviderDefaults {
    base_url: Some("https://api.openai.com/v1"),
    allows_anonymous: false,
    key_names: &[
        "api_key",
        "openai_api_key",
        "deepseek_api_key",
        "vllm_api_key",
        "dashscope_api_key",
    ],
    key_variable: "OPENAI_API_KEY",
};

/// Dialect of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    /// Value of `model_provider`.
    pub(crate) provider: &'static str,
    /// Defaults of the endpoint.
    pub(crate) defaults: ProviderDefaults,
    /// Field for the reasoning of an earlier answer, on servers that require it back.
    pub(crate) reasoning_field: Option<&'static str>,
    /// Value of that field for an earlier answer without reasoning. Some servers reject a
    /// conversation without it.
    pub(crate) reasoning_placeholder: Option<&'static str>,
    /// Sends reasoning back as the list of details that was received.
    pub(crate) returns_reasoning_details: bool,
    /// Sends back the extra fields of a tool call, such as a thought signature.
    pub(crate) returns_call_extras: bool,
    /// Sends `max_tokens` as `max_completion_tokens`: OpenAI's newer models reject the old name.
    pub(crate) renames_max_tokens: bool,
    /// Leaves out the names of message authors: the server rejects them.
    pub(crate) drops_names: bool,
    /// Requests reasoning separate from the text.
    pub(crate) splits_reasoning: bool,
    /// Separates `<think>` blocks from the text.
    pub(crate) splits_think_tags: bool,
    /// Sends `chat_template_kwargs.thinking` as `enable_thinking`.
    pub(crate) renames_thinking_switch: bool,
    /// The model accepts images. Other models may reject every later request of a conversation with
    /// an image.
    pub(crate) accepts_images: bool,
    /// Sends content as text, never as blocks.
    pub(crate) flattens_content: bool,
    /// Requests answers with tools without streaming. Their calls may be in the text.
    pub(crate) calls_in_text: bool,
    /// Accepts the names of Ollama's own parameters.
    pub(crate) accepts_ollama_names: bool,
}

impl Dialect {
    /// Identifies the JSON of messages: equal for two dialects only if they send each message in the
    /// same form.
    pub(crate) fn message_format(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let form = (
            "chat completions",
            self.reasoning_field,
            self.reasoning_placeholder,
            self.returns_reasoning_details,
            self.returns_call_extras,
            self.drops_names,
            self.accepts_images,
            self.flattens_content,
        );
        form.hash(&mut hasher);
        hasher.finish()
    }

    /// OpenAI and servers without differences.
    pub(crate) const OPENAI: Self = Self {
        provider: "openai",
        defaults: SERVER,
        reasoning_field: None,
        reasoning_placeholder: None,
        returns_reasoning_details: false,
        returns_call_extras: false,
        renames_max_tokens: false,
        drops_names: false,
        splits_reasoning: false,
        splits_think_tags: false,
        renames_thinking_switch: false,
        accepts_images: false,
        flattens_content: false,
        calls_in_text: false,
        accepts_ollama_names: false,
    };
    /// DeepSeek, which requires the reasoning of earlier answers back.
    pub(crate) const DEEPSEEK: Self = Self {
        provider: "deepseek",
        defaults: at("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        reasoning_field: Some("reasoning_content"),
        reasoning_placeholder: Some(""),
        ..Self::OPENAI
    };
    /// Servers of other operators that require reasoning back.
    pub(crate) const REASONING_REPLAY: Self = Self {
        provider: "openai",
        defaults: NO_DEFAULT_SERVER,
        returns_call_extras: true,
        ..Self::DEEPSEEK
    };
    /// Kimi, of Moonshot.
    pub(crate) const KIMI: Self = Self {
        provider: "kimi",
        defaults: at("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
        // The server treats an empty value as missing.
        reasoning_placeholder: Some(" "),
        ..Self::REASONING_REPLAY
    };
    /// Doubao, on Volcengine's Ark.
    pub(crate) const DOUBAO: Self = Self {
        provider: "doubao",
        defaults: at(
            "https://ark.cn-beijing.volces.com/api/v3",
            "VOLCENGINE_API_KEY",
        ),
        ..Self::REASONING_REPLAY
    };
    /// Qwen, on Alibaba's DashScope.
    pub(crate) const QWEN: Self = Self {
        provider: "qwen",
        defaults: at(
            "https://dashscope.aliyuncs.com/compatible-mode/v1",
            "DASHSCOPE_API_KEY",
        ),
        splits_think_tags: true,
        ..Self::OPENAI
    };
    /// OpenRouter, a gateway to many providers.
    pub(crate) const OPENROUTER: Self = Self {
        provider: "openrouter",
        defaults: at("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        returns_reasoning_details: true,
        returns_call_extras: true,
        ..Self::OPENAI
    };
    /// MiniMax.
    pub(crate) const MINIMAX: Self = Self {
        provider: "minimax",
        defaults: at("https://api.minimax.io/v1", "MINIMAX_API_KEY"),
        drops_names: true,
        splits_reasoning: true,
        splits_think_tags: true,
        ..Self::OPENAI
    };
    /// vLLM's own server.
    pub(crate) const VLLM: Self = Self {
        provider: "vllm",
        defaults: NO_DEFAULT_SERVER,
        reasoning_field: Some("reasoning"),
        renames_thinking_switch: true,
        ..Self::OPENAI
    };
    /// Huawei's MindIE.
    pub(crate) const MINDIE: Self = Self {
        provider: "mindie",
        defaults: NO_DEFAULT_SERVER,
        drops_names: true,
        flattens_content: true,
        calls_in_text: true,
        splits_think_tags: true,
        ..Self::OPENAI
    };
    /// Ollama's OpenAI-compatible API. It has no parameter for the context length.
    pub(crate) const OLLAMA: Self = Self {
        provider: "ollama",
        defaults: NO_DEFAULT_SERVER,
        accepts_ollama_names: true,
        splits_think_tags: true,
        ..Self::OPENAI
    };
}

const NO_DEFAULT_SERVER: ProviderDefaults = ProviderDefaults {
    base_url: None,
    ..SERVER
};

const fn at(base_url: &'static str, key_variable: &'static str) -> ProviderDefaults {
    ProviderDefaults {
        base_url: Some(base_url),
        key_variable,
        ..SERVER
    }
}
