//! Maps the `use` of a `tools[]` entry to its provider and its role. Pure.

use super::image_search::IMAGE_SEARCH;
use super::web_fetch::WEB_FETCH;
use super::web_search::WEB_SEARCH;

/// Provider of a web tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    Brave,
    Browserless,
    Crawl4Ai,
    /// Fetches the page without a provider.
    Direct,
    DuckDuckGo,
    Exa,
    FastCrw,
    Firecrawl,
    GroundRoute,
    InfoQuest,
    Jina,
    SearXng,
    Serper,
    Tavily,
}

/// Role of a web tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Search,
    Fetch,
    Images,
}

const PROVIDERS: &[(&str, Provider)] = &[
    ("brave", Provider::Brave),
    ("browserless", Provider::Browserless),
    ("crawl4ai", Provider::Crawl4Ai),
    ("direct", Provider::Direct),
    ("ddg_search", Provider::DuckDuckGo),
    ("duckduckgo", Provider::DuckDuckGo),
    ("exa", Provider::Exa),
    ("fastcrw", Provider::FastCrw),
    ("firecrawl", Provider::Firecrawl),
    ("groundroute", Provider::GroundRoute),
    // In DeerFlow, the image search without a provider uses DuckDuckGo.
    ("image_search", Provider::DuckDuckGo),
    ("infoquest", Provider::InfoQuest),
    ("jina_ai", Provider::Jina),
    ("jina", Provider::Jina),
    ("searxng", Provider::SearXng),
    ("serper", Provider::Serper),
    ("tavily", Provider::Tavily),
];

const ROLES: &[(&str, Role)] = &[
    (WEB_SEARCH, Role::Search),
    (WEB_FETCH, Role::Fetch),
    (IMAGE_SEARCH, Role::Images),
];

/// Parses a kind (`tavily.web_search`) or an older class path
/// (`deerflow.community.tavily.tools:web_search_tool`).
pub(super) fn parse(implementation: &str) -> Option<(Provider, Role)> {
    let (provider, tool) = match implementation.split_once("community.") {
        Some((_, path)) => {
            let (module, tool) = path.split_once(':')?;
            (module.split('.').next()?, tool.trim_end_matches("_tool"))
        }
        None => implementation.split_once('.')?,
    };
    let (_, provider) = PROVIDERS.iter().find(|(name, _)| *name == provider)?;
    let (_, role) = ROLES.iter().find(|(name, _)| *name == tool)?;
    Some((*provider, *role))
}

/// Returns the name of the web tool that an entry's `use` selects, if it selects one.
pub fn name_of(implementation: &str) -> Option<&'static str> {
    let (_, role) = parse(implementation)?;
    ROLES
        .iter()
        .find(|(_, known)| *known == role)
        .map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_older_paths_name_the_same_tools() {
        for (path, kind) in [
            (
                "deerflow.community.tavily.tools:web_search_tool",
                (Provider::Tavily, Role::Search),
            ),
            (
                "src.community.jina_ai.tools:web_fetch_tool",
                (Provider::Jina, Role::Fetch),
            ),
            (
                "deerflow.community.image_search.tools:image_search_tool",
                (Provider::DuckDuckGo, Role::Images),
            ),
            (
                "deerflow.community.ddg_search.tools:web_search_tool",
                (Provider::DuckDuckGo, Role::Search),
            ),
            (
                "deerflow.community.infoquest.tools:image_search_tool",
                (Provider::InfoQuest, Role::Images),
            ),
            ("tavily.web_search", (Provider::Tavily, Role::Search)),
            ("direct.web_fetch", (Provider::Direct, Role::Fetch)),
        ] {
            assert_eq!(parse(path), Some(kind), "{path}");
        }
        for other in [
            "sandbox.ls",
            "deerflow.sandbox.tools:ls_tool",
            "my.community.tools:x",
            "tavily",
            "tavily.search",
            "",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
        assert_eq!(name_of("exa.web_fetch"), Some("web_fetch"));
    }
}
