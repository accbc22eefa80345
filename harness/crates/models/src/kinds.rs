//! Provider kinds, by keyword and by the class paths of older configurations.

/// Provider kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProviderKind {
    /// Built-in scripted model.
    Scripted,
    /// OpenAI chat completions, and compatible servers.
    OpenAi,
    /// OpenAI chat completions that send the reasoning of earlier answers back.
    OpenAiCompatReplay,
    /// DeepSeek.
    DeepSeek,
    /// Xiaomi MiMo.
    MiMo,
    /// StepFun.
    StepFun,
    /// A vLLM server.
    Vllm,
    /// MiniMax.
    MiniMax,
    /// Huawei MindIE.
    MindIe,
    /// Anthropic messages.
    Anthropic,
    /// Anthropic messages with caching and sign-in tokens.
    Claude,
    /// Google Gemini.
    Gemini,
    /// Ollama's own API.
    Ollama,
    /// Kimi, of Moonshot.
    Kimi,
    /// Doubao, on Volcengine's Ark.
    Doubao,
    /// Qwen, on Alibaba's DashScope.
    Qwen,
    /// OpenRouter.
    OpenRouter,
    /// OpenAI Codex.
    Codex,
}

/// Kind, its keyword, and the classes that older configurations use: last module segment and class.
struct Row {
    kind: ProviderKind,
    keyword: &'static str,
    classes: &'static [(&'static str, &'static str)],
}

const fn row(
    kind: ProviderKind,
    keyword: &'static str,
    classes: &'static [(&'static str, &'static str)],
) -> Row {
    Row {
        kind,
        keyword,
        classes,
    }
}

const TABLE: &[Row] = &[
    row(ProviderKind::Scripted, "scripted", &[]),
    row(
        ProviderKind::OpenAi,
        "openai",
        &[("langchain_openai", "ChatOpenAI")],
    ),
    row(
        ProviderKind::OpenAiCompatReplay,
        "openai_compat_replay",
        &[("patched_openai", "PatchedChatOpenAI")],
    ),
    row(
        ProviderKind::DeepSeek,
        "deepseek",
        &[
            ("langchain_deepseek", "ChatDeepSeek"),
            ("patched_deepseek", "PatchedChatDeepSeek"),
        ],
    ),
    row(
        ProviderKind::MiMo,
        "mimo",
        &[("patched_mimo", "PatchedChatMiMo")],
    ),
    row(
        ProviderKind::StepFun,
        "stepfun",
        &[("patched_stepfun", "PatchedChatStepFun")],
    ),
    row(
        ProviderKind::Vllm,
        "vllm",
        &[("vllm_provider", "VllmChatModel")],
    ),
    row(
        ProviderKind::MiniMax,
        "minimax",
        &[("patched_minimax", "PatchedChatMiniMax")],
    ),
    row(
        ProviderKind::MindIe,
        "mindie",
        &[("mindie_provider", "MindIEChatModel")],
    ),
    row(
        ProviderKind::Anthropic,
        "anthropic",
        &[("langchain_anthropic", "ChatAnthropic")],
    ),
    row(
        ProviderKind::Claude,
        "claude",
        &[("claude_provider", "ClaudeChatModel")],
    ),
    row(
        ProviderKind::Gemini,
        "gemini",
        &[("langchain_google_genai", "ChatGoogleGenerativeAI")],
    ),
    row(
        ProviderKind::Ollama,
        "ollama",
        &[("langchain_ollama", "ChatOllama")],
    ),
    row(
        ProviderKind::Kimi,
        "kimi",
        &[("langchain_moonshot", "ChatMoonshot")],
    ),
    row(ProviderKind::Doubao, "doubao", &[]),
    row(
        ProviderKind::Qwen,
        "qwen",
        &[("langchain_qwq", "ChatQwen"), ("langchain_qwq", "ChatQwQ")],
    ),
    row(
        ProviderKind::OpenRouter,
        "openrouter",
        &[("langchain_openrouter", "ChatOpenRouter")],
    ),
    row(
        ProviderKind::Codex,
        "codex",
        &[("openai_codex_provider", "CodexChatModel")],
    ),
];

/// Error: the value of `use:` is no known provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`use: {path}` is not a known provider; nearest: {}", nearest.join(", "))]
pub struct UnknownProvider {
    /// Value in the configuration.
    pub path: String,
    /// Most similar keywords.
    pub nearest: Vec<&'static str>,
}

impl ProviderKind {
    /// Parses a value of `use:`. A class path matches by its class and one module segment; its
    /// prefix is ignored.
    pub fn parse(path: &str) -> Result<Self, UnknownProvider> {
        let path = path.trim();
        let row = TABLE
            .iter()
            .find(|row| row.keyword.eq_ignore_ascii_case(path) || row.is_class(path));
        row.map(|row| row.kind).ok_or_else(|| UnknownProvider {
            path: path.to_owned(),
            nearest: nearest(path),
        })
    }

    /// Returns all kinds.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.kind)
    }

    /// Returns the keyword for the configuration.
    pub fn as_str(self) -> &'static str {
        TABLE
            .iter()
            .find(|row| row.kind == self)
            .map_or("unknown", |row| row.keyword)
    }

    /// Returns the command that signs a user in with their own account and writes a credentials
    /// file that replaces an API key.
    #[cfg(feature = "providers")]
    pub(crate) fn sign_in_command(self) -> Option<&'static str> {
        match self {
            Self::Codex => Some("codex login"),
            Self::Anthropic | Self::Claude => Some("claude /login"),
            _ => None,
        }
    }
}

impl Row {
    fn is_class(&self, path: &str) -> bool {
        let Some((module, class)) = path.rsplit_once(':').or_else(|| path.rsplit_once('.')) else {
            return false;
        };
        self.classes
            .iter()
            .any(|(segment, name)| class == *name && module.split('.').any(|part| part == *segment))
    }
}

/// Returns the three keywords most similar to `path` or its class.
fn nearest(path: &str) -> Vec<&'static str> {
    let class = path
        .rsplit([':', '.'])
        .next()
        .unwrap_or(path)
        .to_lowercase();
    let likeness = |row: &Row| {
        let names = row
            .classes
            .iter()
            .map(|(_, class)| class.to_lowercase())
            .chain([row.keyword.to_owned()]);
        names
            .map(|name| edit_distance(&class, &name))
            .min()
            .unwrap_or(usize::MAX)
    };
    let mut rows: Vec<&Row> = TABLE.iter().collect();
    rows.sort_by_key(|row| likeness(row));
    rows.into_iter().take(3).map(|row| row.keyword).collect()
}

/// Returns the edit distance of two words. Compares only the first 64 characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut line: Vec<usize> = (0..=b.len()).collect();
    for (row, letter) in a.chars().take(64).enumerate() {
        let mut diagonal = line[0];
        line[0] = row + 1;
        for (column, other) in b.iter().enumerate() {
            let change = diagonal + usize::from(letter != *other);
            diagonal = line[column + 1];
            line[column + 1] = change.min(diagonal + 1).min(line[column] + 1);
        }
    }
    line.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::ProviderKind::*;
    use super::*;

    #[test]
    fn keywords_and_class_paths_give_the_same_kinds() {
        for (path, expected) in [
            ("scripted", Scripted),
            ("openai", OpenAi),
            ("langchain_openai:ChatOpenAI", OpenAi),
            ("langchain_openai.chat_models.base:ChatOpenAI", OpenAi),
            ("langchain_openai.ChatOpenAI", OpenAi),
            ("langchain_anthropic:ChatAnthropic", Anthropic),
            ("langchain_google_genai:ChatGoogleGenerativeAI", Gemini),
            ("langchain_ollama:ChatOllama", Ollama),
            ("langchain_deepseek:ChatDeepSeek", DeepSeek),
            (
                "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
                DeepSeek,
            ),
            ("src.models.patched_deepseek:PatchedChatDeepSeek", DeepSeek),
            (
                "deerflow.models.patched_openai:PatchedChatOpenAI",
                OpenAiCompatReplay,
            ),
            (
                "deerflow.models.patched_minimax:PatchedChatMiniMax",
                MiniMax,
            ),
            ("deerflow.models.patched_mimo:PatchedChatMiMo", MiMo),
            (
                "deerflow.models.patched_stepfun:PatchedChatStepFun",
                StepFun,
            ),
            ("deerflow.models.vllm_provider:VllmChatModel", Vllm),
            ("deerflow.models.mindie_provider:MindIEChatModel", MindIe),
            ("src.models.claude_provider:ClaudeChatModel", Claude),
            (
                "deerflow.models.openai_codex_provider:CodexChatModel",
                Codex,
            ),
        ] {
            assert_eq!(ProviderKind::parse(path), Ok(expected), "{path}");
            assert_eq!(ProviderKind::parse(expected.as_str()), Ok(expected));
        }
    }

    #[test]
    fn unknown_path_error_lists_nearest_kinds() {
        let error = ProviderKind::parse("langchain_openai:ChatOpenAi").unwrap_err();
        assert_eq!(error.nearest[0], "openai");
        assert!(error.to_string().contains("langchain_openai:ChatOpenAi"));
        assert_eq!(
            ProviderKind::parse("olama").unwrap_err().nearest[0],
            "ollama"
        );
        for malformed in ["", ":", ".", "x:ChatOpenAI", &"é".repeat(5000)] {
            assert!(ProviderKind::parse(malformed).is_err());
        }
    }
}
