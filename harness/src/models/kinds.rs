//! Which provider a `use:` means: kinds by their own word, and the class paths of older configurations.

/// A provider wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProviderKind {
    /// The built-in scripted model.
    Scripted,
    /// OpenAI chat completions, and servers compatible with it.
    OpenAi,
    /// The same, sending the reasoning of earlier answers back.
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

/// A kind, its word, and the classes that older configurations name it by: last module segment and class.
struct Row {
    kind: ProviderKind,
    word: &'static str,
    classes: &'static [(&'static str, &'static str)],
}

const fn row(
    kind: ProviderKind,
    word: &'static str,
    classes: &'static [(&'static str, &'static str)],
) -> Row {
    Row {
        kind,
        word,
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

/// A `use:` that means no provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`use: {path}` is no known provider; nearest: {}", nearest.join(", "))]
pub struct UnknownProvider {
    /// What was written.
    pub path: String,
    /// Words that it may have meant.
    pub nearest: Vec<&'static str>,
}

impl ProviderKind {
    /// Reads a `use:`. Of a class path only the class and a module segment before it must be known, whatever its prefix.
    pub fn parse(path: &str) -> Result<Self, UnknownProvider> {
        let path = path.trim();
        let found = TABLE
            .iter()
            .find(|row| row.word.eq_ignore_ascii_case(path) || row.is_class(path));
        found.map(|row| row.kind).ok_or_else(|| UnknownProvider {
            path: path.to_owned(),
            nearest: nearest(path),
        })
    }

    /// Every kind there is.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.kind)
    }

    /// The word that names it in a configuration.
    pub fn as_str(self) -> &'static str {
        TABLE
            .iter()
            .find(|row| row.kind == self)
            .map_or("unknown", |row| row.word)
    }

    /// What people run to sign in with their own account: it writes a file that can stand in for a key.
    #[cfg(feature = "providers")]
    pub(in crate::models) fn sign_in_command(self) -> Option<&'static str> {
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

/// The three words most like `path` or its class.
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
            .chain([row.word.to_owned()]);
        names
            .map(|name| distance(&class, &name))
            .min()
            .unwrap_or(usize::MAX)
    };
    let mut rows: Vec<&Row> = TABLE.iter().collect();
    rows.sort_by_key(|row| likeness(row));
    rows.into_iter().take(3).map(|row| row.word).collect()
}

/// How many letters must change to make one word of the other. Long texts are compared by their beginning.
fn distance(a: &str, b: &str) -> usize {
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
    fn words_and_old_class_paths_mean_the_same_kinds() {
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
    fn an_unknown_path_is_told_the_nearest_kinds() {
        let error = ProviderKind::parse("langchain_openai:ChatOpenAi").unwrap_err();
        assert_eq!(error.nearest[0], "openai");
        assert!(error.to_string().contains("langchain_openai:ChatOpenAi"));
        assert_eq!(
            ProviderKind::parse("olama").unwrap_err().nearest[0],
            "ollama"
        );
        for odd in ["", ":", ".", "x:ChatOpenAI", &"é".repeat(5000)] {
            assert!(ProviderKind::parse(odd).is_err());
        }
    }
}
