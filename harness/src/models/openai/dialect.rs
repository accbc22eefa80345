//! How servers that speak chat completions differ: a small value chosen once per entry.

use crate::models::http::Site;

const SERVER: Site = Site {
    base_url: Some("https://api.openai.com/v1"),
    open: false,
    key_names: &[
        "api_key",
        "openai_api_key",
        "deepseek_api_key",
        "vllm_api_key",
        "dashscope_api_key",
    ],
    key_variable: "OPENAI_API_KEY",
};

/// The differences that matter.
#[derive(Debug, Clone, Copy)]
pub(in crate::models) struct Dialect {
    /// The word in `model_provider`.
    pub(in crate::models) provider: &'static str,
    /// Where the server lives when the entry does not say.
    pub(in crate::models) site: Site,
    /// The field in which a past answer's reasoning is sent back, for servers that want it.
    pub(in crate::models) reasoning_field: Option<&'static str>,
    /// What stands in that field for a past answer without reasoning: some servers refuse a conversation that lacks it.
    pub(in crate::models) reasoning_placeholder: Option<&'static str>,
    /// Reasoning goes back as the list of details that it came as.
    pub(in crate::models) returns_reasoning_details: bool,
    /// What came with a tool call, such as the signature of the thoughts behind it, goes back with it.
    pub(in crate::models) returns_call_extras: bool,
    /// `max_tokens` goes as `max_completion_tokens`: OpenAI's newer models refuse the old name.
    pub(in crate::models) renames_max_tokens: bool,
    /// Speakers' names are left out: the server refuses them.
    pub(in crate::models) drops_names: bool,
    /// Asks for reasoning apart from the text.
    pub(in crate::models) splits_reasoning: bool,
    /// Thoughts that stand in the text all the same are parted from it.
    pub(in crate::models) parts_think_tags: bool,
    /// `chat_template_kwargs.thinking` goes as `enable_thinking`.
    pub(in crate::models) renames_thinking_switch: bool,
    /// The model sees images. Others may refuse a conversation for good that has one.
    pub(in crate::models) sees_images: bool,
    /// Content goes as text, never as blocks.
    pub(in crate::models) flattens_content: bool,
    /// Answers with tools come whole, and their calls may stand in the text.
    pub(in crate::models) calls_in_text: bool,
    /// The names of Ollama's own parameters are understood.
    pub(in crate::models) reads_ollama_names: bool,
}

impl Dialect {
    /// Plain chat completions.
    pub(in crate::models) const OPENAI: Self = Self {
        provider: "openai",
        site: SERVER,
        reasoning_field: None,
        reasoning_placeholder: None,
        returns_reasoning_details: false,
        returns_call_extras: false,
        renames_max_tokens: false,
        drops_names: false,
        splits_reasoning: false,
        parts_think_tags: false,
        renames_thinking_switch: false,
        sees_images: false,
        flattens_content: false,
        calls_in_text: false,
        reads_ollama_names: false,
    };
    /// Wants the reasoning of earlier answers back.
    pub(in crate::models) const DEEPSEEK: Self = Self {
        provider: "deepseek",
        site: at("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        reasoning_field: Some("reasoning_content"),
        reasoning_placeholder: Some(""),
        ..Self::OPENAI
    };
    /// The same, on somebody else's server.
    pub(in crate::models) const REASONING_REPLAY: Self = Self {
        provider: "openai",
        site: ANYWHERE,
        returns_call_extras: true,
        ..Self::DEEPSEEK
    };
    /// Kimi, of Moonshot.
    pub(in crate::models) const KIMI: Self = Self {
        provider: "kimi",
        site: at("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
        // It takes an empty one for a missing one.
        reasoning_placeholder: Some(" "),
        ..Self::REASONING_REPLAY
    };
    /// Doubao, on Volcengine's Ark.
    pub(in crate::models) const DOUBAO: Self = Self {
        provider: "doubao",
        site: at(
            "https://ark.cn-beijing.volces.com/api/v3",
            "VOLCENGINE_API_KEY",
        ),
        ..Self::REASONING_REPLAY
    };
    /// Qwen, on Alibaba's DashScope.
    pub(in crate::models) const QWEN: Self = Self {
        provider: "qwen",
        site: at(
            "https://dashscope.aliyuncs.com/compatible-mode/v1",
            "DASHSCOPE_API_KEY",
        ),
        parts_think_tags: true,
        ..Self::OPENAI
    };
    /// OpenRouter, before many providers.
    pub(in crate::models) const OPENROUTER: Self = Self {
        provider: "openrouter",
        site: at("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        returns_reasoning_details: true,
        returns_call_extras: true,
        ..Self::OPENAI
    };
    /// MiniMax.
    pub(in crate::models) const MINIMAX: Self = Self {
        provider: "minimax",
        site: at("https://api.minimax.io/v1", "MINIMAX_API_KEY"),
        drops_names: true,
        splits_reasoning: true,
        parts_think_tags: true,
        ..Self::OPENAI
    };
    /// vLLM's own server.
    pub(in crate::models) const VLLM: Self = Self {
        provider: "vllm",
        site: ANYWHERE,
        reasoning_field: Some("reasoning"),
        renames_thinking_switch: true,
        ..Self::OPENAI
    };
    /// Huawei's MindIE.
    pub(in crate::models) const MINDIE: Self = Self {
        provider: "mindie",
        site: ANYWHERE,
        drops_names: true,
        flattens_content: true,
        calls_in_text: true,
        parts_think_tags: true,
        ..Self::OPENAI
    };
    /// Ollama's compatible side; it cannot be told how long the context is.
    pub(in crate::models) const OLLAMA: Self = Self {
        provider: "ollama",
        site: ANYWHERE,
        reads_ollama_names: true,
        parts_think_tags: true,
        ..Self::OPENAI
    };
}

const ANYWHERE: Site = Site {
    base_url: None,
    ..SERVER
};

const fn at(base_url: &'static str, key_variable: &'static str) -> Site {
    Site {
        base_url: Some(base_url),
        key_variable,
        ..SERVER
    }
}
