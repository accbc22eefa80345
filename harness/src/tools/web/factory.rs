//! Builds the configured web tools.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, ClientBuilder};

use super::brave;
use super::image_search::{ImageArgs, ImageSearch};
use super::kinds::{self, Provider, Role};
use super::ports::{ImageFinder, PageFinder, PageReader};
use super::remote::{Remote, RetryBudget};
use super::settings::{InvalidWebTool, Settings, Variables};
use super::web_fetch::{UrlCheck, WebFetch};
use super::web_search::{CountedSearchArgs, Form, SearchArgs, WebSearch};
use crate::config::ToolConfig;
use crate::net::{Egress, GuardedClient, Lookup, Ports, SystemLookup};
use crate::tools::{DynTool, erase};

pub(super) type BuiltTool = Result<Arc<dyn DynTool>, InvalidWebTool>;

/// Timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// User agent that is sent to pages and search engines.
pub(super) const USER_AGENT_TEXT: &str = concat!(
    "Mozilla/5.0 (compatible; deerflow/",
    env!("CARGO_PKG_VERSION"),
    ")"
);
/// Default maximum length of a page for the model, in characters.
const DEFAULT_CHARS: usize = 4_096;

/// Factory of web tools, with the resources that all of them share.
#[derive(Debug, Clone)]
pub struct WebToolFactory {
    pub(super) client: Client,
    lookup: Arc<dyn Lookup>,
    pub(super) retry_budget: RetryBudget,
    variables: Variables,
}

impl WebToolFactory {
    /// Environment variables that supply keys and addresses missing in an entry.
    pub const VARIABLES: &[&str] = &[
        "BRAVE_SEARCH_API_KEY",
        "BROWSERLESS_TOKEN",
        "CRAWL4AI_TOKEN",
        "CRW_API_KEY",
        "CRW_API_URL",
        "EXA_API_KEY",
        "FIRECRAWL_API_KEY",
        "GROUNDROUTE_API_KEY",
        "INFOQUEST_API_KEY",
        "JINA_API_KEY",
        "SERPER_API_KEY",
        "TAVILY_API_KEY",
    ];

    /// Creates a factory with the system's resolver.
    pub fn new(variables: Variables) -> reqwest::Result<Self> {
        Self::with(
            variables,
            Arc::new(SystemLookup::default()),
            RetryBudget::default(),
        )
    }

    /// Creates a factory with another resolver for addresses that models name, and another retry
    /// budget for providers.
    pub fn with(
        variables: Variables,
        lookup: Arc<dyn Lookup>,
        retry_budget: RetryBudget,
    ) -> reqwest::Result<Self> {
        Ok(Self {
            client: provider_client(|client| client)?,
            lookup,
            retry_budget,
            variables,
        })
    }

    /// Builds the tool of an entry; `None` if the entry does not select a web tool.
    pub fn tool(&self, entry: &ToolConfig) -> Option<BuiltTool> {
        let (provider, role) = kinds::parse(&entry.implementation)?;
        let settings = Settings::new(entry, &self.variables);
        let unresolved = entry
            .require_resolved()
            .map_err(|missing| settings.invalid(missing.to_string()));
        Some(unresolved.and_then(|()| self.make(provider, role, settings)))
    }

    fn make(&self, provider: Provider, role: Role, s: Settings<'_>) -> BuiltTool {
        match (provider, role) {
            (Provider::Brave, Role::Search) => Ok(counted(self.brave(s, brave::MAX_RESULTS)?)),
            (Provider::Brave, Role::Images) => {
                Ok(images(self.brave(s, brave::MAX_IMAGES)?, Form::Object))
            }
            (Provider::Browserless, Role::Fetch) => self.browserless(s),
            (Provider::Crawl4Ai, Role::Fetch) => self.crawl4ai(s),
            (Provider::Direct, Role::Fetch) => self.direct(s),
            (Provider::DuckDuckGo, Role::Search) => Ok(counted(self.duckduckgo(s)?)),
            (Provider::DuckDuckGo, Role::Images) => self.duckduckgo_images(s),
            (Provider::Exa, Role::Search) => Ok(listed(self.exa(s)?)),
            (Provider::Exa, Role::Fetch) => self.page(s, self.exa(s)?, s.base_url(None, "").1),
            (Provider::FastCrw, Role::Search) => Ok(listed(self.fastcrw(s)?)),
            (Provider::FastCrw, Role::Fetch) => self.page(s, self.fastcrw(s)?, true),
            (Provider::Firecrawl, Role::Search) => Ok(listed(self.firecrawl(s)?)),
            (Provider::Firecrawl, Role::Fetch) => {
                self.page(s, self.firecrawl(s)?, s.base_url(None, "").1)
            }
            (Provider::GroundRoute, Role::Search) => Ok(erase(
                WebSearch::<CountedSearchArgs>::new(Arc::new(self.groundroute(s)?), Form::List),
            )),
            (Provider::GroundRoute, Role::Fetch) => {
                self.page(s, self.groundroute(s)?, s.base_url(None, "").1)
            }
            (Provider::InfoQuest, Role::Search) => Ok(listed(self.infoquest(s, role)?)),
            (Provider::InfoQuest, Role::Images) => Ok(images(self.infoquest(s, role)?, Form::List)),
            (Provider::InfoQuest, Role::Fetch) => {
                self.page(s, self.infoquest(s, role)?, s.base_url(None, "").1)
            }
            (Provider::Jina, Role::Fetch) => self.jina(s),
            (Provider::SearXng, Role::Search) => Ok(listed(self.searxng(s)?)),
            (Provider::Serper, Role::Search) => Ok(counted(self.serper(s)?)),
            (Provider::Serper, Role::Images) => Ok(images(self.serper(s)?, Form::Object)),
            (Provider::Tavily, Role::Search) => Ok(listed(self.tavily(s)?)),
            (Provider::Tavily, Role::Fetch) => {
                self.page(s, self.tavily(s)?, s.base_url(None, "").1)
            }
            _ => Err(s.invalid("this provider has no such tool")),
        }
    }

    /// Creates a client for a provider at the configured address, or at `base`.
    pub(super) fn remote(
        &self,
        s: Settings<'_>,
        name: &'static str,
        base: &str,
        seconds: u64,
    ) -> Result<Remote, InvalidWebTool> {
        self.remote_by(
            self.client.clone(),
            s,
            name,
            s.base_url(None, base).0,
            seconds,
        )
    }

    pub(super) fn remote_by(
        &self,
        client: Client,
        s: Settings<'_>,
        name: &'static str,
        base: String,
        seconds: u64,
    ) -> Result<Remote, InvalidWebTool> {
        let limit = s.seconds(&["timeout", "timeout_s"], seconds)?;
        Remote::new(name, client, &base, limit, self.retry_budget).map_err(|why| s.invalid(why))
    }

    /// Creates a `web_fetch` tool. If `self_hosted`, the provider may share this machine's network,
    /// so host names are resolved and checked first.
    pub(super) fn page(
        &self,
        s: Settings<'_>,
        reader: impl PageReader,
        self_hosted: bool,
    ) -> BuiltTool {
        let guard = self.guard(s)?;
        let url_check = if self_hosted {
            UrlCheck::Resolve(guard)
        } else {
            UrlCheck::Syntax(guard)
        };
        Ok(erase(WebFetch {
            reader: Arc::new(reader),
            url_check,
            max_chars: max_chars(s)?,
        }))
    }

    /// Creates the guarded client that checks addresses named by a model.
    pub(super) fn guard(&self, s: Settings<'_>) -> Result<GuardedClient, InvalidWebTool> {
        let egress = Egress {
            allow_private: s.switch("allow_private_addresses", false)?,
            hosts: s.texts("allowed_hosts")?,
            ports: Ports::Web,
        };
        let result = GuardedClient::new(egress, self.lookup.clone(), |client| {
            client
                .connect_timeout(CONNECT_TIMEOUT)
                .user_agent(USER_AGENT_TEXT)
        });
        result.map_err(|error| s.invalid(error.to_string()))
    }
}

/// Creates a client for providers. A configured address may be anywhere, and no redirect is
/// followed, so that a key is not sent to another server.
pub(super) fn provider_client(
    adjust: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> reqwest::Result<Client> {
    let client = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none());
    adjust(client.user_agent(concat!("deerflow/", env!("CARGO_PKG_VERSION")))).build()
}

fn max_chars(s: Settings<'_>) -> Result<usize, InvalidWebTool> {
    Ok(s.count("max_chars", 100..=1_000_000)?
        .unwrap_or(DEFAULT_CHARS))
}

fn listed(finder: impl PageFinder) -> Arc<dyn DynTool> {
    erase(WebSearch::<SearchArgs>::new(Arc::new(finder), Form::List))
}

fn counted(finder: impl PageFinder) -> Arc<dyn DynTool> {
    erase(WebSearch::<CountedSearchArgs>::new(
        Arc::new(finder),
        Form::Object,
    ))
}

fn images(finder: impl ImageFinder, form: Form) -> Arc<dyn DynTool> {
    erase(ImageSearch::<ImageArgs>::new(Arc::new(finder), form))
}
